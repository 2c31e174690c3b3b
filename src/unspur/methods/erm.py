"""Empirical risk minimisation: what everybody does, and what every repair is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.core.options import added
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit, Method
from unspur.parts.last_layer import check_head, set_head
from unspur.parts.last_logistic import STRENGTHS, Judged, Layers, fit_plain, require_strengths
from unspur.train.loop import train as train_model
from unspur.train.losses import Loss, cross_entropy, focal
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class ERM(Method):
    """Minimise the mean cross-entropy of the training set (MaskTune, Eq. 1).

    With ``layers=last`` the network stays as it is, and a logistic regression on its features is fitted for each
    strength of L2; the best on validation images, by the mean over classes, is kept.
    """

    name: ClassVar[str] = "erm"
    paper: ClassVar[str] = "plain training"
    cost: ClassVar[str] = "1"
    erm: Optimiser = SGD()  # sgd, adam, adamw, adadelta or kron
    focal: float = 0.0  # gamma of the focal loss, which counts what is fitted well for less; 0: cross-entropy
    layers: Layers = added("all")  # what is trained: all layers, or the last one on features computed once
    l2s: tuple[float, ...] = added(STRENGTHS)  # of the last layer, on features of deviation 1

    def __post_init__(self) -> None:
        require(0 <= self.focal < math.inf, f"focal must be a number from 0 but got {self.focal}.")
        require(self.layers == "all" or not self.focal, "The focal loss is for all layers; leave focal or layers out.")
        require_strengths(self.l2s)

    @property
    def loss(self) -> Loss:
        return focal(self.focal) if self.focal else cross_entropy

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """A last layer that is trained alone must be linear."""
        if self.layers == "last":
            check_head(model, train)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        if self.layers == "all":
            train_model(model, train, self.erm, stage="erm", session=session, loss=self.loss)
            return Fit(model)
        heads = fit_plain(model, train, self.l2s, session)
        chosen = Judged.of(model, val, session, "val-features").best(heads)
        set_head(model, *heads[chosen])
        return Fit(model.eval(), figures={"chosen_l2": self.l2s[chosen]})
