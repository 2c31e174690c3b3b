"""EIIL (arXiv:2010.07249): 1. ERM.  2. Split what it learnt where it is least invariant.  3. GroupDRO or IRM."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional

from unspur.core.options import require_choices, require_finite
from unspur.core.progress import of_stage
from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, LogitsMethod
from unspur.parts.domains import require_annealing, train_annealed
from unspur.parts.inferred_groups import Inferred, all_logits, train_on_groups
from unspur.parts.invariance import environments, invariance, slopes
from unspur.parts.mining import Mined, require_both
from unspur.train.loop import train as train_model
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class EIIL(LogitsMethod):
    """Environment inference: split the data so that a brief ERM is least invariant, then train on that (EIIL, 3).

    Soft assignments begin at random and rise along the invariance penalty of the brief model, which is frozen. What
    comes out is near a split by whether a larger scale of its logits raises or lowers a sample's loss. Groups of
    GroupDRO are a label with an environment, as on Waterbirds; IRM takes the environments, as on Colored MNIST. Neither
    gets validation data, whose environments nobody has found: the last weights of GroupDRO are the result. The
    environment with the higher loss of the brief model counts as mined. Runs on one device.
    """

    name: ClassVar[str] = "eiil"
    paper: ClassVar[str] = "arXiv:2010.07249"
    cost: ClassVar[str] = "1.25 and more"
    one_device: ClassVar[bool] = True
    erm: Optimiser = SGD(epochs=1)  # the brief training
    training: Optimiser = SGD(weight_decay=1e-4)  # of the result, from the same initial weights
    on: Literal["groupdro", "irm"] = "groupdro"  # what trains on the environments
    lr: float = 1e-3  # of Adam, for the assignments
    steps: int = 10_000  # of the assignments
    lam: float = 100.0  # with irm: weight of the penalty
    anneal: int = 500  # with irm: steps with a weight of 1 before it

    def __post_init__(self) -> None:
        require_finite(self)
        require_choices(self)
        require(self.erm.epochs >= 1, f"erm.epochs must be at least 1 but got {self.erm.epochs}.")
        require(self.lr > 0 and self.lam >= 0, f"lr must be above 0 and lam from 0 but got {self.lr} and {self.lam}.")
        require(self.steps >= 1, f"steps must be at least 1 but got {self.steps}.")
        require(self.anneal >= 0, f"anneal must be at least 0 but got {self.anneal}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """IRM needs steps with its full penalty."""
        if self.on == "irm":
            require_annealing(train, self.training, torch.zeros(len(train), dtype=torch.long), self.anneal)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        brief = copy.deepcopy(model)
        train_model(brief, train, self.erm, stage="erm", session=session)
        logits = all_logits(brief, train, session)
        start = torch.randn(len(train), generator=stream(session.seed, "environments"))
        progress = of_stage(session.progress, "environments")
        first = environments(slopes(logits.double(), train.y), start, self.lr, self.steps, progress)
        require_both(first, "erm", instead="")
        losses = functional.cross_entropy(logits, train.y, reduction="none")
        mined = Mined(first if losses[first].mean() > losses[~first].mean() else ~first, None, train.y)
        figures, warnings = {}, mined.warnings()
        if self.on == "irm":
            weights = (min(1.0, self.lam), self.lam)
            train_annealed(model, train, self.training, mined.train.long(), invariance, weights, self.anneal, session)
        else:
            groups = Inferred.by(train, mined.train)
            figures = train_on_groups(model, train, None, groups, self.training, session)
            warnings += groups.warnings()
        return Fit(model, {"erm": brief}, Baseline("erm"), mining=mined, figures=figures, warnings=warnings)
