"""One-sided prediction: the coverage of each class under a bound on its mistakes (OSP, arXiv:2010.07853, Eq. 9)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.data.base import Batch
from unspur.train.moments import Carry, Minimised, Moment


class Sides(NamedTuple):
    """For each class: how badly it is covered, and how much other classes are mistaken for it."""

    missed: Tensor
    mistaken: Tensor


def sides(logits: Tensor, y: Tensor) -> Sides:
    """The mean of -log f_k over the samples of class k, and that of -log(1 - f_k) over all others; 0 over none."""
    chance = logits.log_softmax(1)
    own = functional.one_hot(y, logits.shape[1]).to(chance)
    likeliest = functional.one_hot(logits.argmax(1), logits.shape[1]).bool()
    others = chance.masked_fill(likeliest, -torch.inf)
    # log(1 - f): of a class that is all but certain 1 - f is lost in rounding, but the others' sum is not
    rest = torch.where(likeliest, others.logsumexp(1, keepdim=True), torch.log1p(-others.exp()))
    missed = -(chance * own).sum(0) / own.sum(0).clamp(min=1)
    return Sides(missed, -(rest * (1 - own)).sum(0) / (1 - own).sum(0).clamp(min=1))


class Multipliers(Carry):
    """The multipliers lambda and the slacks phi of Eq. 9, and the loss that they give.

    Multipliers begin at mu, where they should end. Slacks begin at the first batch's own mistakes, so that nothing
    pushes the multipliers at first. With a slack far above all mistakes, multipliers would fall to 0, which switches
    them off for the rest of a short training.
    """

    saved: ClassVar[tuple[str, ...]] = ("lam", "slack")

    def __init__(self, classes: int, mu: float, slack_rate: float, rate: float, device: torch.device) -> None:
        self.mu, self.slack_rate, self.rate = mu, slack_rate, rate
        self.lam = torch.full((classes,), mu, device=device)
        self.slack: Tensor | None = None  # before the first batch

    def objective(self, model: nn.Module, batch: Batch, step: int) -> Minimised:
        """Eq. 9 on a batch, its mean over classes: their sum is a rate that many times as high as plain training's."""
        logits = model(batch.x).float()
        found = sides(logits, batch.y)
        lam, slack = self._at(found.mistaken.detach())
        loss = (found.missed + lam * (found.mistaken - slack) + self.mu * slack).mean()
        return Minimised(loss, logits, {"missed": found.missed.mean(), "mistaken": found.mistaken.mean()})

    def see(self, moment: Moment) -> None:
        mistaken = sides(moment.logits.float(), moment.batch.y).mistaken
        lam, slack = self._at(mistaken)
        self.lam = (lam + self.rate * (mistaken - slack)).clamp(min=0)
        self.slack = (slack - self.slack_rate * (self.mu - lam)).clamp(min=0)

    def _at(self, mistaken: Tensor) -> tuple[Tensor, Tensor]:
        """Multipliers and slacks, on the device of a batch's ``mistaken``: what was loaded may be on another."""
        slack = mistaken if self.slack is None else self.slack
        return self.lam.to(mistaken.device), slack.to(mistaken.device)
