"""Weights that follow other, faster ones."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from unspur.train.moments import Carry, Moment


class Lookahead(Carry):
    """After every so many steps the weights go back to where that stretch began, plus a share of the way since."""

    saved: ClassVar[tuple[str, ...]] = ("slow",)

    def __init__(self, model: nn.Module, every: int, share: float, device: torch.device) -> None:
        self.every, self.share = every, share
        self.slow: list[Tensor] = [weight.detach().to(device, copy=True) for weight in model.parameters()]

    @torch.no_grad()
    def see(self, moment: Moment) -> None:
        if (moment.step + 1) % self.every == 0:
            weights = list(moment.model.parameters())
            self.slow = [
                slow.to(weight.device).lerp(weight, self.share)  # what was loaded may be on another device
                for slow, weight in zip(self.slow, weights, strict=True)
            ]
            for slow, weight in zip(self.slow, weights, strict=True):
                weight.copy_(slow)
