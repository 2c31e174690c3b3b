"""CausIRL (arXiv:2206.11646): learn while any two mixtures of all domains keep the same means and covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit
from unspur.methods.domain_method import DomainMethod
from unspur.parts.domains import Seen, penalised
from unspur.parts.feature_distances import coral, resplit
from unspur.train.loop import train as train_model
from unspur.train.orders import Even
from unspur.train.session import Session


@dataclass(frozen=True)
class CausIRLCORAL(DomainMethod):
    """Align the means and covariances of the features between random mixtures of domains (CausIRL, section 4).

    Every step draws two mixtures: each domain goes to both sides in shares of its own. The distance is that of `coral`.
    """

    name: ClassVar[str] = "causirl_coral"
    paper: ClassVar[str] = "arXiv:2206.11646"
    cost: ClassVar[str] = "1"
    gamma: float = 1.0  # weight of the distance

    def __post_init__(self) -> None:
        require(self.gamma >= 0, f"gamma must be a number from 0 but got {self.gamma}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        domain = self.domain(train)
        objective = penalised(domain, penalty, self.gamma)
        train_model(
            model, train, self.training, stage="training", session=session, objective=objective, order=Even(domain)
        )
        return Fit(model)


def penalty(seen: Seen) -> Tensor:
    """The distance between two random sides of the batch, each a mixture of all domains."""
    side = resplit(seen.domain, len(seen.risks))
    return seen.risks.new_zeros(()) if side is None else coral(seen.features, side)
