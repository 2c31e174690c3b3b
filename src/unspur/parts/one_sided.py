"""One-sided prediction: the coverage of each class under a bound on its mistakes (OSP, arXiv:2010.07853, Eq. 9)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.data.base import Batch
from unspur.train.moments import Carry, Minimised, Moment

START = 1.0  # of multipliers and slacks


class Sides(NamedTuple):
    """Of each class: how badly it is covered, and how far others are taken for it."""

    missed: Tensor
    mistaken: Tensor


def sides(logits: Tensor, y: Tensor) -> Sides:
    """The mean of -log f_k over the samples of class k, and that of -log(1 - f_k) over all others; 0 over none."""
    chance = logits.log_softmax(1)
    own = functional.one_hot(y, logits.shape[1]).to(chance)
    rest = torch.log1p(-chance.exp().clamp(max=1 - torch.finfo(chance.dtype).eps))
    missed = -(chance * own).sum(0) / own.sum(0).clamp(min=1)
    return Sides(missed, -(rest * (1 - own)).sum(0) / (1 - own).sum(0).clamp(min=1))


class Multipliers(Carry):
    """The multipliers lambda and the slacks phi of Eq. 9, and the loss that they give."""

    saved: ClassVar[tuple[str, ...]] = ("lam", "slack")

    def __init__(self, classes: int, mu: float, slack_rate: float, rate: float, device: torch.device) -> None:
        self.mu, self.slack_rate, self.rate = mu, slack_rate, rate
        self.lam = torch.full((classes,), START, device=device)
        self.slack = torch.full((classes,), START, device=device)

    def objective(self, model: nn.Module, batch: Batch, step: int) -> Minimised:
        """Eq. 9 on a batch."""
        logits = model(batch.x).float()
        found, lam, slack = sides(logits, batch.y), self.lam.to(logits.device), self.slack.to(logits.device)
        loss = (found.missed + lam * (found.mistaken - slack) + self.mu * slack).sum()
        return Minimised(loss, logits, {"missed": found.missed.mean(), "mistaken": found.mistaken.mean()})

    def see(self, moment: Moment) -> None:
        mistaken = sides(moment.logits.float(), moment.batch.y).mistaken
        lam, slack = self.lam.to(mistaken.device), self.slack.to(mistaken.device)
        self.lam = (lam + self.rate * (mistaken - slack)).clamp(min=0)
        self.slack = (slack - self.slack_rate * (self.mu - lam)).clamp(min=0)
