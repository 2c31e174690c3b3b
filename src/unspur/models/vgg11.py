"""Large-LR's convolutional network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unspur.errors import require
from unspur.models.spec import ArchSpec

_POOL = 0
_LAYERS = (64, _POOL, 128, _POOL, 256, 256, _POOL, 512, 512, _POOL, 512, 512, _POOL)


@dataclass(frozen=True)
class VGG11(ArchSpec):
    """VGG11's eight convolutions, then one linear layer, no biases anywhere (large-LR C); images from 32x32.

    Not torchvision's network of that name. The paper is silent on initialisation; the convolutions are drawn as
    torchvision draws VGG's (He's normal, by fan-out), since torch's own smaller default loses the signal over eight
    layers that have neither bias nor batch norm.
    """

    name: ClassVar[str] = "vgg11"
    width: float = 1.0  # times the channels of every layer

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.width > 0, f"arch.width must be above 0 but got {self.width}.")

    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        channels, height, width = self.images(sample_shape, at_least=32)
        layers: list[nn.Module] = []
        for size in _LAYERS:
            if size == _POOL:
                layers.append(nn.MaxPool2d(2))
                continue
            after = max(1, round(size * self.width))
            convolution = nn.Conv2d(channels, after, 3, padding=1, bias=False)
            nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
            layers += [convolution, nn.ReLU()]
            channels = after
        flat = channels * (height // 32) * (width // 32)
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, classes, bias=False))
