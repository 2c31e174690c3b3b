"""The region that a map shows in each image: what a detector fires for, or what a model looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Region:
    """Where ``find`` says so: a function from images to booleans (n, height, width)."""

    family: ClassVar[str] = "region"
    find: Callable[[Tensor], Tensor]

    def measure(self, images: Tensor) -> Tensor:
        """The share of the image, and the mean colour of it."""
        mask = self.find(images).unsqueeze(1).float()
        size = mask.sum((2, 3))
        colour = (images * mask).sum((2, 3)) / size.clamp_min(1)
        return torch.cat([size / mask[0].numel(), colour], 1)

    def outline(self, images: Tensor) -> Tensor:
        return self.find(images)

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        """The image without its own region; the donor's region is pasted where the donor has it."""
        return torch.where(self.find(donors).unsqueeze(1), donors, self.remove(images))

    def cover(self, images: Tensor, donors: Tensor, others: Tensor) -> Tensor:
        """The image with pixels of ``others`` where the donors have the region: the effect of pasting alone."""
        return torch.where(self.find(donors).unsqueeze(1), others, self.remove(images))

    def remove(self, images: Tensor) -> Tensor:
        """The region filled from what lies around it."""
        mask = self.find(images).unsqueeze(1)
        some, filled = mask.flatten(1).any(1), images.clone()  # filling takes long, and most images may have no region
        filled[some] = torch.where(mask[some], _surroundings(images[some], ~mask[some]), images[some])
        return filled


def _surroundings(images: Tensor, known: Tensor) -> Tensor:
    """Fill unknown pixels with the means of known ones, in ever wider windows until every pixel has a value."""
    seen = images * known
    filled, reach = torch.zeros_like(images), known
    for radius in (2, 4, 8, 16, 32, 64):
        if radius >= min(images.shape[2:]) or bool(reach.all()):
            break
        weight = _box_means(known.float(), radius)
        value = _box_means(seen, radius) / weight.clamp_min(1e-6)
        fresh = (weight > 0.05) & ~reach
        filled, reach = torch.where(fresh, value, filled), reach | fresh
    mean = seen.sum((2, 3), keepdim=True) / known.sum((2, 3), keepdim=True).clamp_min(1)
    return torch.where(reach, filled, mean)


def _box_means(images: Tensor, radius: int) -> Tensor:
    """The mean of the window around each pixel, black outside; by rows, then columns, to be fast in wide windows."""
    size = 2 * radius + 1
    rows = functional.avg_pool2d(images, (1, size), stride=1, padding=(0, radius))
    return functional.avg_pool2d(rows, (size, 1), stride=1, padding=(radius, 0))
