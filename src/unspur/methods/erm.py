"""Empirical risk minimisation: what everybody does, and what every repair is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from unspur.core.options import added
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.parts.inferred_groups import BestRound
from unspur.train.loop import train as train_model
from unspur.train.losses import Loss, cross_entropy, focal
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class ERM(LogitsMethod):
    """Minimise the mean cross-entropy of the training set (MaskTune, Eq. 1).

    The result has the last epoch's weights, or with ``keep=best`` those that were right on most validation images
    (large-LR D.4: "validation set based model selection"), of equal ones the first.
    """

    name: ClassVar[str] = "erm"
    paper: ClassVar[str] = "plain training"
    cost: ClassVar[str] = "1"
    erm: Optimiser = SGD()  # sgd, adam, adamw, adadelta or kron
    keep: Literal["last", "best"] = added("last")  # the weights of the last epoch, or the best on validation images
    focal: float = 0.0  # gamma of the focal loss, which counts what is fitted well for less; 0: cross-entropy

    def __post_init__(self) -> None:
        require(0 <= self.focal < math.inf, f"focal must be a number from 0 but got {self.focal}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """The best epoch is found by validation images."""
        require(
            self.keep == "last" or bool(val),
            "keep=best chooses an epoch by validation images, but there are none; give some (--set data.val=5000) or "
            "use keep=last.",
        )

    @property
    def loss(self) -> Loss:
        return focal(self.focal) if self.focal else cross_entropy

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        if self.keep == "last":
            train_model(model, train, self.erm, stage="erm", session=session, loss=self.loss)
            return Fit(model)
        assert val is not None  # as checked
        best = BestRound(model, val, torch.zeros_like(val.y), session, shown="val_accuracy")  # all are one group
        train_model(model, train, self.erm, stage="erm", session=session, loss=self.loss, carry=[best])
        return Fit(model, figures={"val_accuracy": best.restore()})
