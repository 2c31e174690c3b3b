"""MMD (CVPR 2018): learn while the features of all domains keep the same distribution, as kernels see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit
from unspur.methods.domain_method import DomainMethod
from unspur.parts.domains import Seen, penalised
from unspur.parts.feature_distances import mmd
from unspur.train.loop import train as train_model
from unspur.train.orders import Even
from unspur.train.session import Session


@dataclass(frozen=True)
class MMD(DomainMethod):
    """Align the distributions of the features between domains by their maximum mean discrepancy (MMD-AAE, Eq. 4).

    The distance without the autoencoder and the adversary of MMD-AAE, as domains are usually compared by it. The mean
    over pairs of domains, with Gaussian kernels of seven widths from 0.001 to 1,000.
    """

    name: ClassVar[str] = "mmd"
    paper: ClassVar[str] = "CVPR 2018"
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
    """The mean distance between the features of two domains."""
    return mmd(seen.features, seen.domain)
