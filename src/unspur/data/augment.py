"""Augmentation: each training image is moved a little, differently each time, and its mask moves with it.

The stored image is masked first, and the result is moved, so a mask always stays on what it hides. Maps are always of
the stored image, never of a crop, so none is ever stretched over more than it shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from unspur.errors import require


@dataclass(frozen=True)
class Augment:
    """Mirror, shift and zoom training images at random."""

    name: ClassVar[str] = "augment"
    flip: bool = False  # mirror every other image, left to right
    pad: int = 0  # shift by up to so many pixels each way; what comes in is black
    area: float = 1.0  # the smallest share of the image that a crop may be, which is then resized to the whole
    aspect: float = 1.0  # how much such a crop may be wider than high, or higher than wide, in the image's own shape

    def __post_init__(self) -> None:
        require(self.pad >= 0, f"augment.pad must be at least 0 pixels but got {self.pad}.")
        require(0 < self.area <= 1, f"augment.area must lie in (0, 1] but got {self.area}.")
        require(self.aspect >= 1, f"augment.aspect must be at least 1 but got {self.aspect}.")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The images ``x``, (n, channels, height, width), each moved as ``generator`` draws it."""
        if self.area < 1 or self.aspect > 1:
            x = self._zoomed(x, generator)
        if self.pad:
            x = self._shifted(x, generator)
        if self.flip:
            mirrored = torch.rand(len(x), generator=generator).to(x.device) < 0.5
            x = torch.where(mirrored[:, None, None, None], x.flip(-1), x)
        return x

    def _shifted(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """A window of the image's own size, anywhere in the image with ``pad`` black pixels around it."""
        height, width = x.shape[-2:]
        windows = functional.pad(x, (self.pad,) * 4).unfold(2, height, 1).unfold(3, width, 1)
        top, left = torch.randint(2 * self.pad + 1, (2, len(x)), generator=generator).to(x.device)
        return windows[torch.arange(len(x), device=x.device), :, top, left]

    def _zoomed(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """A part of the image, of random area, shape and place, resized to the whole."""
        share, shape, across, down = torch.rand((4, len(x)), generator=generator).to(x.device)
        area = self.area + (1 - self.area) * share
        ratio = torch.exp((2 * shape - 1) * math.log(self.aspect))
        width, height = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
        # The part's sides, then its centre, in affine_grid's units: half images, from the centre.
        zero = torch.zeros_like(width)
        x_row = torch.stack([width, zero, (2 * across - 1) * (1 - width)], dim=1)
        y_row = torch.stack([zero, height, (2 * down - 1) * (1 - height)], dim=1)
        grid = functional.affine_grid(torch.stack([x_row, y_row], dim=1), list(x.shape), align_corners=False)
        return functional.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
