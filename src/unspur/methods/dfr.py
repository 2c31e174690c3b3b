"""DFR (arXiv:2204.02937): 1. ERM.  2. Balance the groups of held-out data.  3. Fit the last layer on that."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split, groups_of
from unspur.methods.base import Baseline, Fit, LogitsMethod
from unspur.models.base import head_of
from unspur.parts.balanced_heads import Labelled, Others, Plan, balanced_head, require_judged, require_plan
from unspur.parts.features import features_of
from unspur.parts.last_layer import check_head
from unspur.parts.logistic import require_bias
from unspur.train.loop import train as train_model
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class DFR(LogitsMethod):
    """Deep feature reweighting: fit the last layer on group-balanced held-out data (DFR, section 6).

    The group-labelled data are those for validation, half of which tunes C. An L1 logistic regression on standardised
    features, the mean of 20 fits on balanced draws. The penalty is solved as one problem over all classes, of which
    there may be more than two. Features are standardised by the held-out data's, where the authors' code takes those of
    the training set. Since it fits the validation data, nothing else may be chosen on these.
    """

    name: ClassVar[str] = "dfr"
    paper: ClassVar[str] = "arXiv:2204.02937"
    cost: ClassVar[str] = "1 and a last layer"
    needs_val_groups: ClassVar[bool] = True
    mixes: ClassVar[bool] = False
    one_device: ClassVar[bool] = True
    erm: Optimiser = SGD()  # the training of the network
    strengths: tuple[float, ...] = (1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)  # C of the logistic regression
    fits: int = 20  # balanced draws whose fits are averaged
    steps: int = 2000  # of a fit, at most

    def __post_init__(self) -> None:
        require_plan(self.plan)

    @property
    def plan(self) -> Plan:
        """What is tried."""
        return Plan(self.strengths, (1.0,), self.fits, self.steps)

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """The model must end in one linear layer, and a group have samples to fit and to judge by."""
        require_bias(check_head(model, train))
        if val is not None:
            require_judged(val)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        assert val is not None  # the base has asked for its groups
        train_model(model, train, self.erm, stage="erm", session=session)
        before = copy.deepcopy(model)
        data = Labelled(features_of(model, val, session, "val-features").cpu(), val.y, groups_of(val).id)
        others = self.others(model, train, session)
        found = balanced_head(data, others, head_of(model).out_features, self.plan, session)
        found.heads.give(model)
        return Fit(model.eval(), {"erm": before}, Baseline("erm"), warnings=found.warnings, figures=found.figures)

    def others(self, model: nn.Module, train: Split, session: Session) -> Others | None:
        """Samples that the balanced ones are mixed with: none."""
        return None
