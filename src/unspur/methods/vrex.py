"""V-REx (arXiv:2003.00688): 1. Learn.  2. Ask that the risk is the same in every domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from unspur.core.options import require_finite
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit
from unspur.methods.domain_method import DomainMethod
from unspur.parts.domains import Seen, require_annealing, train_annealed
from unspur.train.session import Session


@dataclass(frozen=True)
class VREx(DomainMethod):
    """Risk extrapolation: penalise the variance of the domains' risks (V-REx, Eq. 8).

    The objective is the mean of the risks plus beta times their variance, where the paper has their sum, so that its
    beta is ours times the number of domains. The variance divides by that number. The whole is divided by beta once
    that exceeds 1, and the optimiser begins again when beta rises, as in IRM's code, which the paper builds on.
    """

    name: ClassVar[str] = "vrex"
    paper: ClassVar[str] = "arXiv:2003.00688"
    cost: ClassVar[str] = "1"
    beta: float = 10.0  # weight of the variance
    anneal: int = 500  # steps with beta = 1 before it

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.beta >= 0, f"beta must be a number from 0 but got {self.beta}.")
        require(self.anneal >= 0, f"anneal must be at least 0 but got {self.anneal}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be several domains, and steps with the full penalty."""
        super().check(model, train, val)
        require_annealing(train, self.training, self.domain(train), self.anneal)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        weights, domain = (min(1.0, self.beta), self.beta), self.domain(train)
        train_annealed(model, train, self.training, domain, penalty, weights, self.anneal, session)
        return Fit(model)


def penalty(seen: Seen) -> Tensor:
    """The variance of the domains' risks."""
    return seen.risks.var(correction=0)
