"""Cells of a grid over the image: pasted from one image into the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from unspur.errors import require

GRID = 8  # cells each way of the leak map


@dataclass(frozen=True)
class Cells:
    """Cells (row, column) of a grid of ``rows`` x ``columns``, such as the leakiest of a leak map."""

    family: ClassVar[str] = "cells"
    rows: int
    columns: int
    cells: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        require(bool(self.cells), "A cue of cells needs at least one cell.")
        outside = [cell for cell in self.cells if not (0 <= cell[0] < self.rows and 0 <= cell[1] < self.columns)]
        require(not outside, f"The cell {outside[:1]} lies outside a grid of {self.rows}x{self.columns}.")

    def mask(self, height: int, width: int) -> Tensor:
        """(height, width): True inside the cells.

        >>> Cells(2, 2, ((0, 1),)).mask(2, 4).int().tolist()
        [[0, 0, 1, 1], [0, 0, 0, 0]]
        """
        grid = torch.zeros(self.rows, self.columns)
        for row, column in self.cells:
            grid[row, column] = 1
        return functional.interpolate(grid[None, None], size=(height, width), mode="nearest")[0, 0] > 0

    def measure(self, images: Tensor) -> Tensor:
        """The mean and deviation of each channel inside the cells."""
        inside = images[:, :, self.mask(*images.shape[2:])]
        return torch.cat([inside.mean(2), inside.std(2)], 1)

    def outline(self, images: Tensor) -> Tensor:
        return self.mask(*images.shape[2:]).expand(len(images), -1, -1)

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        return torch.where(self.mask(*images.shape[2:]), donors, images)

    def remove(self, images: Tensor) -> Tensor:
        """The cells filled with the mean colour of the rest of their image."""
        mask = self.mask(*images.shape[2:])
        rest = images[:, :, ~mask].mean(2) if bool((~mask).any()) else images.mean((2, 3))
        return torch.where(mask, rest[:, :, None, None], images)
