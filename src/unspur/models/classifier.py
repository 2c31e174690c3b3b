"""What every build returns: a network that takes pixels in [0, 1] and normalises them itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from unspur.models.base import batch_norms, last_layer

Frozen = Literal["none", "norm", "backbone"]


class Normalize(nn.Module):
    """(x - mean) / std, channel by channel, with both stored beside the weights.

    A grey image is repeated, before normalisation, to as many channels as there are means:

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
    """Normalisation, then a network: all that is needed to use the model somewhere else.

    What is frozen stays frozen through copies, checkpoints and every call of ``train``. With ``norm``, batch norm uses
    its stored means and variances in training, too, while its scales and shifts still train. With ``backbone``, only
    the last layer trains; everything before it is in evaluation mode.
    """

    def __init__(self, arch: str, normalize: nn.Module, net: nn.Module, frozen: Frozen = "none") -> None:
        super().__init__()
        self.arch = arch  # its name, for messages
        self.frozen = frozen
        self.normalize = normalize
        self.net = net
        # The layers themselves, in a tuple: a module does not register them twice, and a copy gets copies of them.
        # Layers that are added later, such as gates on the weights, are not among them and do train.
        self.still: tuple[nn.Module, ...] = ()
        if frozen == "norm":
            self.still = tuple(batch_norms(net))
        elif frozen == "backbone":
            _, head = last_layer(net)
            net.requires_grad_(False)
            head.requires_grad_(True)
            self.still = tuple(module for module in net.modules() if module is not head)
        self.train()

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(self.normalize(x))
        return logits

    def train(self, mode: bool = True) -> Classifier:
        super().train(mode)
        for layer in self.still:
            layer.training = False
        return self
