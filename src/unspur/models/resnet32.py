"""The 32-layer residual network for CIFAR-10."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unspur.models.spec import ArchSpec


@dataclass(frozen=True)
class ResNet32(ArchSpec):
    """He et al.'s 32 layers for CIFAR, 16-32-64 channels, 0.46 M weights (arXiv:1512.03385 4.2; MaskTune 4.2).

    Where a block halves the map, its shortcut takes every second pixel and leaves the new channels at zero (their
    option A), so shortcuts have no weights. Convolutions are initialised as theirs, but the last layer by torch's
    default: their rule would give it larger weights, with which a rate of 0.1 loses most of the first epoch.
    """

    name: ClassVar[str] = "resnet32"

    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        channels, _, _ = self.images(sample_shape)
        stem = [nn.Conv2d(channels, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        blocks = []
        for stage, size in enumerate((16, 32, 64)):
            halve = stage > 0
            blocks.append(Block(size // 2 if halve else size, size, stride=2 if halve else 1))
            blocks += [Block(size, size, stride=1) for _ in range(4)]
        net = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))
        for module in net.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
        return net


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.new = stride, after - before

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        shortcut = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.new // 2, self.new - self.new // 2))
        return F.relu(out + shortcut)
