"""XRM (arXiv:2309.16748): 1. Twins relabel each other's halves.  2. Their mistakes are a group.  3. GroupDRO."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import nn

from unspur.core.options import require_finite
from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import Diverged, require
from unspur.methods.base import Fit, LogitsMethod
from unspur.parts.inferred_groups import Inferred, train_on_groups
from unspur.parts.mining import require_both
from unspur.parts.pairs import Pair
from unspur.parts.student import new_student
from unspur.parts.twins import Found, train_twins
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class XRM(LogitsMethod):
    """Cross-risk minimisation: groups by the mistakes of twins that relabel each other's data (XRM, Algorithm 1).

    Each sample belongs to one twin, by a coin. The other's prediction replaces its label after a step, for good and
    with a chance that grows with its confidence. There is no early stop: of several rates the one counts with the most
    labels changed in the end, among those that leave two environments in every class of training and validation data.
    By the latter's environments GroupDRO's round is chosen. Twins begin alike but for the head. Runs on one device.
    """

    name: ClassVar[str] = "xrm"
    paper: ClassVar[str] = "arXiv:2309.16748"
    cost: ClassVar[str] = "5"
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD(weight_decay=1e-4)  # of the result
    twins: Optimiser = SGD()  # of the twins, with each of the rates
    rates: tuple[float, ...] = (0.001, 0.01)  # learning rates of the twins

    def __post_init__(self) -> None:
        require_finite(self)
        rates = list(self.rates)
        require(len(rates) > 0 and min(rates) > 0, f"rates must be numbers above 0 but got {rates}.")
        require(self.twins.epochs >= 1, f"twins.epochs must be at least 1 but got {self.twins.epochs}.")
        early = self.twins.until_accuracy, self.twins.until_loss
        require(
            early == (None, None),
            "xrm's twins train to the end of their epochs, since labels change all the time; leave "
            "twins.until_accuracy and twins.until_loss unset.",
        )

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        tried, diverged = [], []
        for rate in self.rates:
            try:
                tried.append(self._try(rate, model, train, val, session))
            except Diverged:
                if rate == self.rates[-1] and not tried:
                    raise
                diverged.append(f"At rate {rate:g} the twins diverged, so that it was not chosen from.")
        best = max(tried, key=lambda found: found.rank)
        mined = best.mined
        require_both(mined.train, "twins", instead=", or take other rates")
        groups = Inferred.by(train, mined.train, val, mined.val)
        figures = train_on_groups(model, train, val, groups, self.training, session)
        figures |= {"rate": best.rate, "flipped": best.flipped}
        return Fit(model, mining=mined, figures=figures, warnings=[*diverged, *mined.warnings(), *groups.warnings()])

    def _try(self, rate: float, model: nn.Module, train: Split, val: Split | None, session: Session) -> Found:
        coin = torch.rand(len(train), generator=stream(session.seed, "coin")) < 0.5
        twins = Pair(copy.deepcopy(model), new_student(None, model, train, session.seed))
        return train_twins(twins, train, val, coin, replace(self.twins, lr=rate), f"twins-{rate:g}", session)
