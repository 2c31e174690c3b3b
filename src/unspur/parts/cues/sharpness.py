"""Sharpness: how much energy each band of the spectrum has, which blurring, sharpening and resampling change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

BANDS = 12
LIMIT = 6.0  # no band is made stronger than this many times
NEUTRAL = 2.0  # energy falls with this power of the frequency in natural images


@dataclass(frozen=True)
class Sharpness:
    """Bands of the spectrum above ``above`` (a share of the highest frequency) are scaled to the donor's energy."""

    family: ClassVar[str] = "sharpness"
    above: float = 0.25

    def measure(self, images: Tensor) -> Tensor:
        """The log of the energy of each radial band relative to the lowest one kept as it is."""
        power = (torch.fft.rfft2(images.mean(1)).abs() ** 2).flatten(1)
        band = self._band(images).flatten()
        energy = torch.zeros(len(images), BANDS).index_add_(1, band, power)
        logs = (energy / torch.bincount(band, minlength=BANDS).clamp_min(1) + 1e-8).log()
        return logs - logs[:, self._first - 1 : self._first]

    def outline(self, images: Tensor) -> Tensor:
        return torch.ones(len(images), *images.shape[2:], dtype=torch.bool)

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        return self._with(images, self.measure(donors))

    def remove(self, images: Tensor) -> Tensor:
        """Energy that falls with the square of the frequency, as it does on average in natural images."""
        frequency = (torch.arange(BANDS) + 0.5).log()
        wanted = -NEUTRAL * (frequency - frequency[self._first - 1])
        return self._with(images, wanted.expand(len(images), -1))

    @property
    def _first(self) -> int:
        return max(1, round(self.above * BANDS))

    def _band(self, images: Tensor) -> Tensor:
        height, width = images.shape[2:]
        radius = (torch.fft.fftfreq(height).unsqueeze(1) ** 2 + torch.fft.rfftfreq(width) ** 2).sqrt()
        band: Tensor = (radius / 0.5 * BANDS).long().clamp(max=BANDS - 1)
        return band

    def _with(self, images: Tensor, wanted: Tensor) -> Tensor:
        gain = ((wanted - self.measure(images)) / 2).exp().clamp(max=LIMIT)
        gain[:, : self._first] = 1
        changed = torch.fft.rfft2(images) * gain[:, self._band(images)].unsqueeze(1)
        result: Tensor = torch.fft.irfft2(changed, s=images.shape[2:]).clamp(0, 1)
        return result
