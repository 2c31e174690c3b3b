"""The base of methods that fit the last layer on held-out data in which every group counts the same."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import LogitsMethod
from unspur.parts.balanced_heads import Plan, require_judged, require_plan
from unspur.parts.last_layer import check_head
from unspur.parts.logistic import require_bias
from unspur.train.recipe import SGD, Optimiser


@dataclass(frozen=True)
class HeldOutMethod(LogitsMethod):
    """Trains a network plainly and then its last layer on the validation data, whose groups it reads. One device."""

    cost: ClassVar[str] = "1 and a last layer"
    needs_val_groups: ClassVar[bool] = True
    mixes: ClassVar[bool] = False
    one_device: ClassVar[bool] = True
    erm: Optimiser = SGD()  # the training of the network
    strengths: tuple[float, ...] = (1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)  # C of the logistic regression
    fits: int = 20  # balanced draws whose fits are averaged
    steps: int = 2000  # of a fit, at most

    def __post_init__(self) -> None:
        require_finite(self)
        require_plan(self.plan)

    @property
    @abc.abstractmethod
    def plan(self) -> Plan:
        """What is tried."""

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """The model must end in one linear layer, and a group have samples to fit and to judge by."""
        require_bias(check_head(model, train))
        if val is not None:
            missing = sorted(set(train.y.unique().tolist()) - set(val.y.unique().tolist()))
            require(
                not missing,
                f"The validation data have no sample of class {missing}, which the last layer would forget; "
                "hold more out.",
            )
            require_judged(val)
