"""What methods have in common that keep the features of domains near to each other."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from unspur.core.options import require_finite
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit
from unspur.methods.domain_method import DomainMethod
from unspur.parts.domains import Seen, penalised
from unspur.train.loop import train as train_model
from unspur.train.orders import Even
from unspur.train.session import Session


@dataclass(frozen=True)
class AlignedFeatures(DomainMethod):
    """Plain training with a distance between the features of domains, which a method writes as ``penalty``."""

    cost: ClassVar[str] = "1"
    moves_features: ClassVar[bool] = True
    gamma: float = 1.0  # weight of the distance

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.gamma >= 0, f"gamma must be a number from 0 but got {self.gamma}.")

    @abc.abstractmethod
    def penalty(self, seen: Seen) -> Tensor:
        """How far the features of a batch are apart."""

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        domain = self.domain(train)
        objective, order = penalised(domain, self.penalty, self.gamma), Even(domain)
        train_model(model, train, self.training, stage="training", session=session, objective=objective, order=order)
        return Fit(model)
