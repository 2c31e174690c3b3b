"""The level of noise: fine detail that does not fit its surroundings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from unspur.core.seeds import stream


@dataclass(frozen=True)
class Noise:
    """Gaussian noise is added up to the donor's level, or shrunk away down to it."""

    family: ClassVar[str] = "noise"
    seed: int = 0  # of the noise that is added

    def measure(self, images: Tensor) -> Tensor:
        """The deviation of noise in each channel: the median of the diagonal detail of 2 x 2 pixels, over 0.6745."""
        a, b = images[..., :-1:2, :-1:2], images[..., :-1:2, 1::2]
        c, d = images[..., 1::2, :-1:2], images[..., 1::2, 1::2]
        return ((a - b - c + d) / 2).abs().flatten(2).median(2).values / 0.6745

    def outline(self, images: Tensor) -> Tensor:
        return torch.ones(len(images), *images.shape[2:], dtype=torch.bool)

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        return self._with(images, self.measure(donors))

    def remove(self, images: Tensor) -> Tensor:
        """As little noise as smoothing can leave."""
        return self._with(images, torch.zeros(len(images), images.shape[1]))

    def _with(self, images: Tensor, wanted: Tensor) -> Tensor:
        own = self.measure(images)
        more = (wanted**2 - own**2).clamp_min(0).sqrt()[:, :, None, None]
        drawn = self._drawn(images)
        less = (1 - wanted / own.clamp_min(1e-4)).clamp(0, 1)[:, :, None, None]
        smooth = functional.avg_pool2d(functional.pad(images, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
        fine = images - smooth
        # Detail well above the noise is an edge and stays.
        noise_like = torch.exp(-((fine / (3 * own[:, :, None, None] + 1e-4)) ** 2))
        return (images - less * noise_like * fine + more * drawn).clamp(0, 1)

    def _drawn(self, images: Tensor) -> Tensor:
        """Noise of deviation 1 that depends on each image alone, not on those beside it."""
        field = torch.randn(2 * images[0].numel(), generator=stream(self.seed, "cue noise"))
        start = (images.double().sum((1, 2, 3)) * 997).long() % images[0].numel()
        return torch.stack([field[first : first + images[0].numel()] for first in start.tolist()]).view_as(images)
