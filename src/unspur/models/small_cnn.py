"""MaskTune's network for digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unspur.errors import require
from unspur.models.spec import ArchSpec


@dataclass(frozen=True)
class SmallCNN(ArchSpec):
    """Four 3x3 convolutions with batch norm, 16-16-pool-32-32-pool, then 512-256-classes (MaskTune 3).

    The convolutions are not padded, as in the authors' code, so a 28x28 image leaves 32 maps of 4x4: 512 features.
    The hidden layer has batch norm too, as in that code.
    """

    name: ClassVar[str] = "small_cnn"
    hidden: int = 256  # units between features and classes; 0: a plain linear head

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.hidden >= 0, f"arch.hidden must be at least 0 but got {self.hidden}.")

    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        channels, height, width = self.images(sample_shape, at_least=16)
        # Two 3x3 convolutions shorten each side by 4 pixels; pooling halves what is left.
        high, wide = (((length - 4) // 2 - 4) // 2 for length in (height, width))
        return SmallCNNNet(channels, 32 * high * wide, self.hidden, classes)


class SmallCNNNet(nn.Module):
    def __init__(self, channels: int, flat: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *_convolution(channels, 16),
            *_convolution(16, 16),
            nn.MaxPool2d(2),
            *_convolution(16, 32),
            *_convolution(32, 32),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        between = [nn.Linear(flat, hidden), nn.BatchNorm1d(hidden), nn.ReLU()] if hidden else []
        self.head = nn.Sequential(*between, nn.Linear(hidden or flat, classes))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))
        return logits


def _convolution(before: int, after: int) -> list[nn.Module]:
    return [nn.Conv2d(before, after, 3, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
