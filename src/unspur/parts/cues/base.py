"""A cue: something in an image that may give its label away, and that can be moved to another image."""

from __future__ import annotations

from typing import ClassVar, Protocol

from torch import Tensor


class Cue(Protocol):
    """What the audit finds, the swap test and the method `swap` exchange, and a page outlines.

    Images are floats in [0, 1], (n, 3, height, width); no method changes its arguments.
    """

    family: ClassVar[str]

    def measure(self, images: Tensor) -> Tensor:
        """(n, numbers): what is to be seen of the cue in each image."""
        ...

    def outline(self, images: Tensor) -> Tensor:
        """(n, height, width) of booleans: where the cue lies in each image."""
        ...

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        """``images`` with the cue that ``donors`` have, and otherwise as they were."""
        ...

    def remove(self, images: Tensor) -> Tensor:
        """``images`` with the same, neutral cue in each."""
        ...
