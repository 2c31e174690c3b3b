"""Where an image's colour lies far from its own median colour in one direction: a coloured, light or dark mark."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from unspur.errors import require
from unspur.parts.cues.cells import GRID

COLOURS = ("red", "orange", "yellow", "yellow-green", "green", "cyan", "blue", "purple")  # 45 degrees apart
DIRECTIONS = (*COLOURS, "light", "dark")
FINE = 32  # cells each way in which a mark is outlined


@dataclass(frozen=True)
class StandsOut:
    """The places of images (floats, n x 3 x h x w) that exceed ``level`` in ``direction``: booleans (n, h, w).

    A direction is relative to the image's own median cell: on red skin a blue mark lies towards green.
    """

    direction: str
    level: float

    def __post_init__(self) -> None:
        require(
            self.direction in DIRECTIONS and -2 < self.level < 2,
            f"A mark is a direction ({', '.join(DIRECTIONS)}) and a level in (-2, 2) but got '{self.direction}' and "
            f"{self.level}.",
        )

    def __call__(self, images: Tensor) -> Tensor:
        number = DIRECTIONS.index(self.direction)
        coarse, fine = (stand_out(_means(images, grid))[:, number] for grid in (GRID, FINE))
        near = functional.max_pool2d((coarse > self.level).float().unsqueeze(1), 3, stride=1, padding=1)
        near = functional.interpolate(near, size=fine.shape[1:], mode="nearest").squeeze(1) > 0
        inside = (near & (fine > self.level)).float().unsqueeze(1)
        return functional.interpolate(inside, size=images.shape[2:], mode="nearest").squeeze(1) > 0


def _means(images: Tensor, grid: int) -> Tensor:
    return functional.adaptive_avg_pool2d(images, grid)


def stand_out(means: Tensor) -> Tensor:
    """(n, directions, g, g): how far each cell's mean colour (n, 3, g, g) lies from the image's median cell."""
    red, green, blue = means.unbind(1)
    axes = [(red - green) / math.sqrt(2), ((red + green) / 2 - blue) / math.sqrt(1.5), means.mean(1)]
    warm, yellow, light = (axis - axis.flatten(1).median(1).values[:, None, None] for axis in axes)
    angles = [number * math.pi / 4 for number in range(len(COLOURS))]
    return torch.stack([*(math.cos(a) * warm + math.sin(a) * yellow for a in angles), light, -light], 1)
