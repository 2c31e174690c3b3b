"""DCWP's network for coloured digits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unspur.models.spec import ArchSpec


@dataclass(frozen=True)
class CNN3(ArchSpec):
    """Three 4x4 stride-2 convolutions, 64-128-256, batch norm, global average, linear (DCWP E.2).

    0.66 M weights; the paper's 1.3 M counts each weight's pruning parameter too. The paper's text has ReLU before batch
    norm; its code has them the other way round, as here.
    """

    name: ClassVar[str] = "cnn3"

    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        channels, _, _ = self.images(sample_shape, at_least=8)
        sizes = (channels, 64, 128, 256)
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(sizes):
            layers += [nn.Conv2d(before, after, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(sizes[-1], classes))
