"""Fully connected networks."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unspur.errors import require
from unspur.models.spec import ArchSpec


@dataclass(frozen=True)
class FCN(ArchSpec):
    """Fully connected with ReLU, for images or vectors (large-LR C: 2 x 1024 without bias, 2 or 3 x 200 for parity)."""

    name: ClassVar[str] = "fcn"
    depth: int = 2  # hidden layers
    width: int = 1024  # units in each
    bias: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.depth >= 0, f"arch.depth must be at least 0 but got {self.depth}.")
        require(self.width >= 1, f"arch.width must be at least 1 but got {self.width}.")

    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        sizes = [math.prod(sample_shape), *[self.width] * self.depth]
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in itertools.pairwise(sizes):
            layers += [nn.Linear(before, after, bias=self.bias), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], classes, bias=self.bias))
