"""DISPEL (arXiv:2305.14521): 1. ERM.  2. Mix balanced held-out features with training ones.  3. Fit the last layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split
from unspur.methods.dfr import DFR
from unspur.parts.balanced_heads import Others, Plan
from unspur.parts.features import features_of
from unspur.train.session import Session


@dataclass(frozen=True)
class DISPEL(DFR):
    """Fit the last layer on balanced held-out features mixed with those of the training set (DISPEL, Algorithm 1).

    As `dfr`, with x <- s x_balanced + (1 - s) x, where x are features of a training sample of the same class, whose
    group nobody needs to know. s is tuned together with C; at s = 1 it is `dfr`. That both are of one class is our
    reading.
    """

    name: ClassVar[str] = "dispel"
    paper: ClassVar[str] = "arXiv:2305.14521"
    shares: tuple[float, ...] = (1.0, 0.9, 0.8, 0.7)  # s: how much of a sample is the balanced one's

    @property
    def plan(self) -> Plan:
        """What is tried."""
        return Plan(self.strengths, self.shares, self.fits, self.steps)

    def others(self, model: nn.Module, train: Split, session: Session) -> Others | None:
        """Training samples, whose groups nobody needs to know."""
        return Others(features_of(model, train, session, "features").cpu(), train.y)
