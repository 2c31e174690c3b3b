"""Mixup (arXiv:1710.09412): train on images halfway between two others, and on labels likewise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, Method
from unspur.parts.mixing import beta, blended, mixed
from unspur.train.loop import train as train_model
from unspur.train.moments import Minimised
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class Mixup(Method):
    """Train on mixtures of two samples and of their labels (Mixup, Eq. 1).

    The partner is another sample of the batch, in random order, and one share is drawn for the whole batch, as in the
    authors' code. On several devices partners are of the same device's part.
    """

    name: ClassVar[str] = "mixup"
    paper: ClassVar[str] = "arXiv:1710.09412"
    cost: ClassVar[str] = "1"
    training: Optimiser = SGD()
    alpha: float = 0.2  # both parameters of the beta distribution that shares are drawn from

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.alpha > 0, f"alpha must be a number above 0 but got {self.alpha}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            partner = torch.randperm(len(batch.y)).to(batch.y.device)
            return mixed(model, batch, partner, blended(batch.x, partner, beta(self.alpha)))

        train_model(model, train, self.training, stage="training", session=session, objective=objective)
        return Fit(model)
