"""Empirical risk minimisation: what everybody does, and what every repair is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.train.loop import train as train_model
from unspur.train.losses import Loss, cross_entropy, focal
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class ERM(LogitsMethod):
    """Minimise the mean cross-entropy of the training set (MaskTune, Eq. 1)."""

    name: ClassVar[str] = "erm"
    paper: ClassVar[str] = "plain training"
    cost: ClassVar[str] = "1"
    erm: Optimiser = SGD()  # sgd, adam, adamw, adadelta or kron
    focal: float = 0.0  # gamma of the focal loss, which counts what is fitted well for less; 0: cross-entropy

    def __post_init__(self) -> None:
        require(0 <= self.focal < math.inf, f"focal must be a number from 0 but got {self.focal}.")

    @property
    def loss(self) -> Loss:
        return focal(self.focal) if self.focal else cross_entropy

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        train_model(model, train, self.erm, stage="erm", session=session, loss=self.loss)
        return Fit(model)
