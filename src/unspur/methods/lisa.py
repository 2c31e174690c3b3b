"""LISA (arXiv:2201.00299): mix what has the same label and another attribute, or the same attribute, another label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Batch, Split, groups_of
from unspur.errors import require
from unspur.methods.base import Fit, Method
from unspur.parts.mixing import beta, blended, mixed, partners, pasted
from unspur.train.loop import train as train_model
from unspur.train.moments import Minimised
from unspur.train.orders import Draws, equal_shares
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class LISA(Method):
    """Mix samples of one label and different attributes, or of one attribute and different labels (LISA, Algorithm 1).

    Which of the two is drawn for each batch. Partners are of the batch, which holds groups alike often, as in the
    authors' code; a sample that has none there stays as it is.
    """

    name: ClassVar[str] = "lisa"
    paper: ClassVar[str] = "arXiv:2201.00299"
    cost: ClassVar[str] = "1"
    needs_groups: ClassVar[bool] = True
    training: Optimiser = SGD()
    alpha: float = 2.0  # both parameters of the beta distribution that shares are drawn from
    same_label: float = 0.5  # p: how often a batch mixes within labels, and not within attributes
    mix: Literal["blend", "paste"] = "blend"  # blend (mixup), or paste a box of the other image (cut-mix)

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.alpha > 0, f"alpha must be a number above 0 but got {self.alpha}.")
        require(0 <= self.same_label <= 1, f"same_label must lie in [0, 1] but got {self.same_label}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """Boxes need images."""
        images = len(train.sample_shape) == 3
        require(images or self.mix == "blend", "Boxes can be pasted into images alone; use --set mix=blend.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        groups = groups_of(train)
        attribute = torch.tensor([key[1:] for key in groups.keys]).unique(dim=0, return_inverse=True)[1][groups.id]

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            own = attribute[batch.index.cpu()].to(batch.y.device)
            alike, other = (batch.y, own) if torch.rand(()) < self.same_label else (own, batch.y)
            partner, mix = partners(alike, other), blended if self.mix == "blend" else pasted
            return mixed(model, batch, partner, mix(batch.x, partner, beta(self.alpha)))

        order = Draws(equal_shares(groups.id))
        train_model(model, train, self.training, stage="training", session=session, objective=objective, order=order)
        return Fit(model)
