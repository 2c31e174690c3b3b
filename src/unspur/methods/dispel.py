"""DISPEL (arXiv:2305.14521): 1. ERM.  2. Mix balanced held-out features with training ones.  3. Fit the last layer."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split, groups_of
from unspur.methods.base import Baseline, Fit
from unspur.methods.held_out_method import HeldOutMethod
from unspur.models.base import head_of
from unspur.parts.balanced_heads import Labelled, Others, Plan, balanced_head
from unspur.parts.features import features_of
from unspur.train.loop import train as train_model
from unspur.train.session import Session


@dataclass(frozen=True)
class DISPEL(HeldOutMethod):
    """Fit the last layer on held-out features, balanced over groups, mixed with all others (DISPEL, Algorithm 1).

    As `dfr`, with s x_balanced + (1 - s) x in place of x_balanced. x are features of held-out and training samples,
    whose groups nobody needs to know, as many of each class; to each comes a random balanced sample of its class. s is
    tuned together with C; at s = 1 the balanced samples are left, each drawn many times. As in the code of the authors'
    group (SpuCo) with its default of alpha = 1: every sample is mixed.
    """

    name: ClassVar[str] = "dispel"
    paper: ClassVar[str] = "arXiv:2305.14521"
    shares: tuple[float, ...] = (1.0, 0.9, 0.8, 0.7)  # s: how much of a sample is the balanced one's

    @property
    def plan(self) -> Plan:
        """What is tried."""
        return Plan(self.strengths, self.shares, self.fits, self.steps)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        assert val is not None  # the base has asked for its groups
        train_model(model, train, self.erm, stage="erm", session=session)
        before = copy.deepcopy(model)
        data = Labelled(features_of(model, val, session, "val-features").cpu(), val.y, groups_of(val).id)
        others = Others(features_of(model, train, session, "features").cpu(), train.y)
        found = balanced_head(data, others, head_of(model).out_features, self.plan, session)
        found.heads.give(model)
        return Fit(model.eval(), {"erm": before}, Baseline("erm"), warnings=found.warnings, figures=found.figures)
