"""JTT (arXiv:2107.09044): 1. Train briefly.  2. Find what it gets wrong.  3. Train again, with that more often."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, LogitsMethod
from unspur.parts.mining import misclassified, require_both
from unspur.train.loop import train as train_model
from unspur.train.orders import Passes
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class JTT(LogitsMethod):
    """Just train twice: what a short training gets wrong is shown more often in a second one (JTT, Algorithm 1)."""

    name: ClassVar[str] = "jtt"
    paper: ClassVar[str] = "arXiv:2107.09044"
    cost: ClassVar[str] = "1.25 and more"
    erm: Optimiser = SGD(epochs=1)  # the short training, T epochs of which take the shortcut
    training: Optimiser = SGD(epochs=4)  # the second one, from the same initial weights
    up: int = 20  # lambda_up: how often the second one sees, in each epoch, what the first got wrong

    def __post_init__(self) -> None:
        require(self.up >= 1, f"up must be at least 1 but got {self.up}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        brief = copy.deepcopy(model)
        mined = misclassified(brief, train, val, self.erm, session, stage="erm")
        require_both(mined.train, "erm", instead="")
        train_model(model, train, self.training, stage="training", session=session, order=Passes(mined.times(self.up)))
        return Fit(model, {"erm": brief}, Baseline("erm"), mining=mined, warnings=mined.warnings())
