"""A disc at an edge of the image, like the coloured patches beside lesions in photographs of skin."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspur.data.shortcuts.drawn import TEN_COLOURS, Colour, to_rgb
from unspur.errors import require

RING = 1.25  # how far around a disc, in radii, the image's own colour is taken from


@dataclass(frozen=True)
class Disc:
    """A disc in the value's colour, by default half of it inside the image, in the middle of the right edge."""

    colours: tuple[Colour | None, ...] = tuple(TEN_COLOURS.values())  # None: the colour of the image around the disc
    radius: float = 0.25  # as a share of the image's shorter side
    row: float = 0.5  # of its centre: 0 is the upper edge, 1 the lower one
    column: float = 1.0  # 0 is the left edge, 1 the right one

    def __post_init__(self) -> None:
        require(self.radius > 0, f"A disc's radius must be above 0 but got {self.radius}.")
        for name in ("row", "column"):
            place = getattr(self, name)
            require(0 <= place <= 1, f"A disc's {name} is a share of the image and must lie in [0, 1] but got {place}.")

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        images = to_rgb(images)
        cover = self._cover(images.shape)
        colour = torch.zeros(len(images), 3)
        for value in values.unique().tolist():
            chosen, named = values == value, self.colours[value]
            colour[chosen] = self._around(images[chosen]) if named is None else torch.tensor(named, dtype=torch.float)
        return (images * (1 - cover) + colour[:, :, None, None] * cover).round().to(torch.uint8)

    def region(self, sample_shape: torch.Size) -> Tensor:
        return self._cover(sample_shape) > 0

    def _cover(self, shape: torch.Size, larger: float = 1.0) -> Tensor:
        """How far each pixel (height, width) is covered, 0 to 1: the edge is smooth."""
        height, width = shape[-2:]
        down = torch.arange(height) + 0.5 - self.row * height
        across = torch.arange(width) + 0.5 - self.column * width
        radius = larger * self.radius * min(height, width)
        return (radius + 0.5 - torch.hypot(down[:, None], across)).clamp(0, 1)

    def _around(self, images: Tensor) -> Tensor:
        """The median colour (n, 3) of a ring around the disc."""
        ring = (self._cover(images.shape, RING) > 0) & ~self.region(images.shape)
        require(bool(ring.any()), f"A disc of radius {self.radius} leaves nothing of the image around it; lower it.")
        return images[:, :, ring].float().median(dim=2).values
