"""What every build returns: a network that takes pixels in [0, 1] and normalises them itself."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Normalize(nn.Module):
    """(x - mean) / std, channel by channel, with both stored beside the weights.

    A grey image comes out with as many channels as there are means, each a copy of it before normalisation:

    >>> Normalize((0.0, 0.5, 0.5), (1.0, 1.0, 0.5))(torch.ones(1, 1, 1, 1)).flatten().tolist()
    [1.0, 0.5, 1.0]
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).reshape(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).reshape(-1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


class Classifier(nn.Module):
    """Normalisation, then a network: all that is needed to use the model somewhere else."""

    def __init__(self, arch: str, normalize: nn.Module, net: nn.Module) -> None:
        super().__init__()
        self.arch = arch  # its name, for messages
        self.normalize = normalize
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(self.normalize(x))
        return logits
