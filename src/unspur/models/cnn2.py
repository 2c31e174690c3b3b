"""ULE's network for digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unspur.models.spec import ArchSpec


@dataclass(frozen=True)
class CNN2(ArchSpec):
    """Two 3x3 convolutions, 32-64, pool, dropout, 9216-128-classes (ULE 4.2: PyTorch's own MNIST example)."""

    name: ClassVar[str] = "cnn2"

    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        channels, height, width = self.images(sample_shape, at_least=6)
        flat = 64 * ((height - 4) // 2) * ((width - 4) // 2)  # 9216 for 28x28
        return nn.Sequential(
            nn.Conv2d(channels, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.25),
            nn.Flatten(),
            nn.Linear(flat, 128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, classes),
        )
