"""Brightness and contrast: the mean and the deviation of the luminance, or of each channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

EPS = 1e-3
# By how much a deviation may be scaled. A strong tint leaves a tenth of a channel, so that a narrower range would leave
# a part of the tint in the swapped image; a wider one makes pictures of a flat channel's noise.
SCALES = (1 / 16, 16.0)
NEUTRAL = (0.5, 0.2)  # mean and deviation of an image whose tone is taken away


@dataclass(frozen=True)
class Tone:
    """Mean and deviation, shifted and scaled to the donor's.

    ``channels``: each channel by itself, since a tone curve or a white balance changes channels separately.
    """

    family: ClassVar[str] = "brightness"
    channels: bool = False
    brightness: bool = True  # take the mean
    contrast: bool = True  # take the deviation

    def measure(self, images: Tensor) -> Tensor:
        """The mean, then the deviation."""
        values = images.flatten(2) if self.channels else images.mean(1, keepdim=True).flatten(2)
        return torch.cat([values.mean(2), values.std(2)], 1)

    def outline(self, images: Tensor) -> Tensor:
        return torch.ones(len(images), *images.shape[2:], dtype=torch.bool)

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        return self._with(images, self.measure(donors))

    def remove(self, images: Tensor) -> Tensor:
        width = 3 if self.channels else 1
        return self._with(images, torch.tensor([NEUTRAL[0]] * width + [NEUTRAL[1]] * width).expand(len(images), -1))

    def _with(self, images: Tensor, wanted: Tensor) -> Tensor:
        (mean, std), (new_mean, new_std) = self.measure(images).chunk(2, 1), wanted.chunk(2, 1)
        scale = (new_std / std.clamp_min(EPS)).clamp(*SCALES) if self.contrast else torch.ones_like(std)
        target = new_mean if self.brightness else mean
        return ((images - mean[:, :, None, None]) * scale[:, :, None, None] + target[:, :, None, None]).clamp(0, 1)
