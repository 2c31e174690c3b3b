"""Class-balanced training (arXiv:2110.14503): plain training that draws every class alike often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split
from unspur.methods.base import Fit, LogitsMethod
from unspur.train.loop import train as train_model
from unspur.train.orders import Draws, equal_shares
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class ClassBalanced(LogitsMethod):
    """Train with every class drawn alike often (RWY of simple data balancing, section 3).

    As many samples as plain training sees, drawn with replacement: reweighting by sampling, not by weights of losses.
    """

    name: ClassVar[str] = "class_balanced"
    paper: ClassVar[str] = "arXiv:2110.14503"
    cost: ClassVar[str] = "1"
    training: Optimiser = SGD()

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        alike = Draws(equal_shares(train.y))
        train_model(model, train, self.training, stage="training", session=session, order=alike)
        return Fit(model)
