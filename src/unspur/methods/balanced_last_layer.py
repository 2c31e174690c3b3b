"""A last layer trained with group labels, every group weighing the same: what methods without them are measured by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Split, groups_of
from unspur.methods.base import Fit, Method
from unspur.parts.heads import Eq3
from unspur.parts.last_layer import ChosenBy, Plan, cached, check_head, require_trainable, search
from unspur.parts.select import validation_groups
from unspur.train.session import Session


@dataclass(frozen=True)
class BalancedLastLayer(Method):
    """Retrain the last layer of a frozen network with each group weighing the same, chosen by the worst group.

    It reads the group labels of training and validation data, which ULE does not: an upper bound to compare with (last
    layer re-training, ULE 3.1). The grid is ULE's without lambda. Runs on one device.
    """

    name: ClassVar[str] = "balanced_last_layer"
    paper: ClassVar[str] = "last-layer retraining"
    cost: ClassVar[str] = "frozen features"
    network: ClassVar[str] = "pretrained"
    needs_groups: ClassVar[bool] = True
    mixes: ClassVar[bool] = False
    one_device: ClassVar[bool] = True
    lrs: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # learning rates
    l2s: tuple[float, ...] = (1e-4, 1.0)  # L2 regularisation: standard, strong
    epochs: int = 300
    every: int = 10  # epochs from one look at the validation set to the next
    batch_size: int = 128
    momentum: float = 0.9

    def __post_init__(self) -> None:
        require_trainable(self.plan)
        require_finite(self)

    @property
    def plan(self) -> Plan:
        """How the grid is trained; with lambda = 1 there is no second term."""
        loss = Eq3("saliency", "batch", "mse", False)
        return Plan((1.0,), self.lrs, self.l2s, self.epochs, self.every, self.batch_size, self.momentum, loss)

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """The model must end in one linear layer."""
        check_head(model, train)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        data = cached(model, model, train, val, session)
        groups = None
        if val is not None:
            groups = ChosenBy("worst_group", validation_groups("worst_group", val))
        number = groups_of(train).id
        weight = 1 / torch.bincount(number)[number].double()
        found = search(self.plan, data, groups, stage="heads", session=session, weight=weight)
        found.give(model)
        return Fit(model.eval(), figures={"chosen": found.chosen(), "grid": found.table})
