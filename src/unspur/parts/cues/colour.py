"""The colour cast of an image: the mean of its channels relative to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

EPS = 1e-3


@dataclass(frozen=True)
class Colour:
    """Channels are scaled so that their means stand to each other as the donor's do; brightness stays.

    >>> red, grey = torch.tensor([0.6, 0.3, 0.3]).reshape(1, 3, 1, 1), torch.full((1, 3, 1, 1), 0.5)
    >>> [round(value, 2) for value in Colour().swap(grey, red).flatten().tolist()]
    [0.75, 0.38, 0.38]
    """

    family: ClassVar[str] = "colour"

    def measure(self, images: Tensor) -> Tensor:
        """Each channel's mean over the mean of all."""
        mean = images.mean((2, 3)) + EPS
        return mean / mean.mean(1, keepdim=True)

    def outline(self, images: Tensor) -> Tensor:
        return torch.ones(len(images), *images.shape[2:], dtype=torch.bool)

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        return self._with(images, self.measure(donors))

    def remove(self, images: Tensor) -> Tensor:
        """All channels with the same mean."""
        return self._with(images, torch.ones(len(images), images.shape[1]))

    def _with(self, images: Tensor, cast: Tensor) -> Tensor:
        return (images * (cast / self.measure(images))[:, :, None, None]).clamp(0, 1)
