"""IRM (arXiv:1907.02893): 1. Learn.  2. Ask that the same scale of the logits is best in every domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit
from unspur.methods.domain_method import DomainMethod
from unspur.parts.domains import require_annealing, train_annealed
from unspur.parts.invariance import invariance
from unspur.train.session import Session


@dataclass(frozen=True)
class IRM(DomainMethod):
    """Invariant risk minimisation: penalise the slope of each domain's risk along the logits' scale (IRM, Eq. IRMv1).

    The penalty is the square of the whole batch's slope, which is never negative. Appendix D multiplies the slopes of
    two halves of a batch instead: without bias, but negative where they disagree, so that descent seeks disagreement.
    For cross-entropy the slope is the mean of <softmax(z) - y, z>, which takes no second pass. The whole is divided by
    lambda once that exceeds 1, as in the authors' code, and the optimiser begins again when lambda rises.
    """

    name: ClassVar[str] = "irm"
    paper: ClassVar[str] = "arXiv:1907.02893"
    cost: ClassVar[str] = "1"
    lam: float = 100.0  # lambda: weight of the penalty
    anneal: int = 500  # steps with lambda = 1 before it

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.lam >= 0, f"lam must be a number from 0 but got {self.lam}.")
        require(self.anneal >= 0, f"anneal must be at least 0 but got {self.anneal}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be several domains, and steps with the full penalty."""
        super().check(model, train, val)
        require_annealing(train, self.training, self.domain(train), self.anneal)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        weights, domain = (min(1.0, self.lam), self.lam), self.domain(train)
        train_annealed(model, train, self.training, domain, invariance, weights, self.anneal, session)
        return Fit(model)
