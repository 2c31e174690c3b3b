"""DFR (arXiv:2204.02937): 1. ERM.  2. Balance the groups of held-out data.  3. Fit the last layer on that."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split, groups_of
from unspur.methods.base import Baseline, Fit
from unspur.methods.held_out_method import HeldOutMethod
from unspur.models.base import head_of
from unspur.parts.balanced_heads import Labelled, Plan, balanced_head
from unspur.parts.features import features_of
from unspur.train.loop import train as train_model
from unspur.train.session import Session


@dataclass(frozen=True)
class DFR(HeldOutMethod):
    """Deep feature reweighting: fit the last layer on group-balanced held-out data (DFR, section 6).

    The group-labelled data are those for validation, half of which tunes C. An L1 logistic regression on standardised
    features, the mean of 20 fits on balanced draws. The penalty is solved as one problem over all classes, of which
    there may be more than two. Features are standardised by the held-out data's, where the authors' code takes those of
    the training set. Since it fits the validation data, nothing else may be chosen on these.
    """

    name: ClassVar[str] = "dfr"
    paper: ClassVar[str] = "arXiv:2204.02937"

    @property
    def plan(self) -> Plan:
        """What is tried."""
        return Plan(self.strengths, (1.0,), self.fits, self.steps)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        assert val is not None  # the base has asked for its groups
        train_model(model, train, self.erm, stage="erm", session=session)
        before = copy.deepcopy(model)
        data = Labelled(features_of(model, val, session, "val-features").cpu(), val.y, groups_of(val).id)
        found = balanced_head(data, None, head_of(model).out_features, self.plan, session)
        found.heads.give(model)
        return Fit(model.eval(), {"erm": before}, Baseline("erm"), warnings=found.warnings, figures=found.figures)
