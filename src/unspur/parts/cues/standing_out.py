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
    """The places of images (floats, n x 3 x h x w) that exceed a level in a direction: booleans (n, h, w).

    A direction is relative to the image's own median cell: on red skin a blue mark lies towards green. A mark that
    comes in several colours has a level for each.
    """

    levels: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        require(bool(self.levels), "A mark needs a direction and a level.")
        for direction, level in self.levels:
            require(
                direction in DIRECTIONS and -2 < level < 2,
                f"A mark is a direction ({', '.join(DIRECTIONS)}) and a level in (-2, 2) but got '{direction}' and "
                f"{level}.",
            )

    def __call__(self, images: Tensor) -> Tensor:
        coarse, fine = (stand_out(_means(images, grid)) for grid in (GRID, FINE))
        inside = torch.stack([_place(coarse, fine, *each) for each in self.levels]).amax(0)
        inside = functional.max_pool2d(inside, 3, stride=1, padding=1)  # a mark's rim fills its fine cells in part
        return functional.interpolate(inside, size=images.shape[2:], mode="nearest").squeeze(1) > 0


def _place(coarse: Tensor, fine: Tensor, direction: str, level: float) -> Tensor:
    """Fine cells (n, 1, g, g) that exceed the level, in or beside a coarse one that does."""
    number = DIRECTIONS.index(direction)
    near = functional.max_pool2d((coarse[:, number] > level).float().unsqueeze(1), 3, stride=1, padding=1)
    near = functional.interpolate(near, size=fine.shape[2:], mode="nearest")
    return near * (fine[:, number] > level).unsqueeze(1)


def _means(images: Tensor, grid: int) -> Tensor:
    return functional.adaptive_avg_pool2d(images, grid)


def stand_out(means: Tensor) -> Tensor:
    """(n, directions, g, g): how far each cell's mean colour (n, 3, g, g) lies from the image's median cell."""
    red, green, blue = means.unbind(1)
    axes = [(red - green) / math.sqrt(2), ((red + green) / 2 - blue) / math.sqrt(1.5), means.mean(1)]
    warm, yellow, light = (axis - axis.flatten(1).median(1).values[:, None, None] for axis in axes)
    angles = [number * math.pi / 4 for number in range(len(COLOURS))]
    return torch.stack([*(math.cos(a) * warm + math.sin(a) * yellow for a in angles), light, -light], 1)
