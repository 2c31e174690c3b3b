"""The colour cast of an image: the means of its channels, relative to each other or as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

EPS = 1e-3
NEUTRAL = 0.5  # the mean of each channel where brightness is taken away, too


@dataclass(frozen=True)
class Colour:
    """Channels are scaled so that their means stand to each other as the donor's do; brightness stays, or comes along.

    >>> red, grey = torch.tensor([0.6, 0.3, 0.3]).reshape(1, 3, 1, 1), torch.full((1, 3, 1, 1), 0.5)
    >>> [round(value, 2) for value in Colour().swap(grey, red).flatten().tolist()]
    [0.75, 0.38, 0.38]
    >>> [round(value, 2) for value in Colour(brightness=True).swap(grey, red).flatten().tolist()]
    [0.6, 0.3, 0.3]
    """

    family: ClassVar[str] = "colour"
    brightness: bool = False  # take the donor's brightness as well

    def measure(self, images: Tensor) -> Tensor:
        """Each channel's mean, over the mean of all unless brightness counts."""
        mean = images.mean((2, 3)) + EPS
        return mean if self.brightness else mean / mean.mean(1, keepdim=True)

    def outline(self, images: Tensor) -> Tensor:
        return torch.ones(len(images), *images.shape[2:], dtype=torch.bool)

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        return self._with(images, self.measure(donors))

    def remove(self, images: Tensor) -> Tensor:
        """All channels with the same mean."""
        same = torch.full((len(images), images.shape[1]), NEUTRAL if self.brightness else 1.0)
        return self._with(images, same)

    def _with(self, images: Tensor, cast: Tensor) -> Tensor:
        return (images * (cast / self.measure(images))[:, :, None, None]).clamp(0, 1)
