"""Two encoders, one for the class and one for its bias, and two layers that read both (DisEnt, arXiv:2107.01372)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from unspur.core.seeds import seeded
from unspur.data.base import Split
from unspur.models.base import evaluating, head_of, with_features
from unspur.train.session import Session


class Codes(NamedTuple):
    """What the encoders make of a batch."""

    core: Tensor
    bias: Tensor


class Disentangled(nn.Module):
    """The network that is kept and one beside it as encoders, and two linear layers that each read both codes."""

    def __init__(self, kept: nn.Module, beside: nn.Module, seed: int) -> None:
        super().__init__()
        self.beside, self.kept = beside, kept
        size, classes = head_of(kept).in_features, head_of(kept).out_features
        with seeded(seed, "disentangled"):
            self.reads_bias, self.reads_core = nn.Linear(2 * size, classes), nn.Linear(2 * size, classes)

    def forward(self, x: Tensor) -> Tensor:
        codes = [with_features(network, x)[0] for network in (self.kept, self.beside)]
        logits: Tensor = self.reads_core(torch.cat(codes, 1))
        return logits

    def codes(self, model: nn.Module, x: Tensor) -> Codes:
        """Both codes of ``x`` from one pass of ``model``, which is this module or a wrapper around it."""
        core, bias = with_features(model, x, self.reads_core)[0].float().chunk(2, 1)
        return Codes(core, bias)

    def answers(self, codes: Codes) -> tuple[Tensor, Tensor]:
        """The logits of class and of bias; the gradient of either does not reach the other's code."""
        of_core = self.reads_core(torch.cat([codes.core, codes.bias.detach()], 1))
        return of_core, self.reads_bias(torch.cat([codes.core.detach(), codes.bias], 1))

    @torch.no_grad()
    def give_head(self, train: Split, session: Session) -> None:
        """Make the class layer the kept network's last layer, with the bias code fixed at its mean over ``train``."""
        total, size = torch.zeros((), device=session.device), head_of(self.kept).in_features
        with evaluating(self):
            for batch in train.batches(torch.arange(len(train)).split(250), session.device):
                total = total + with_features(self.beside, batch.x)[0].sum(0)
        head, weight = head_of(self.kept), self.reads_core.weight
        head.weight.copy_(weight[:, :size])
        head.bias.copy_(self.reads_core.bias + weight[:, size:] @ (total / len(train)))
