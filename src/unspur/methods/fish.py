"""Fish (arXiv:2104.09937): 1. A clone steps on each domain in turn.  2. Go half the way to where it is.  3. Again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit
from unspur.methods.domain_method import DomainMethod
from unspur.parts.lookahead import Lookahead
from unspur.train.loop import train as train_model
from unspur.train.orders import Turns
from unspur.train.session import Session


@dataclass(frozen=True)
class Fish(DomainMethod):
    """Match the domains' gradients by stepping on one after the other and then half the way (Fish, Algorithm 1).

    The domains' order is drawn again for every turn. The optimiser's momentum goes on through all turns. Batch norm
    sees one domain at a time in training, and the mean of all in evaluation.
    """

    name: ClassVar[str] = "fish"
    paper: ClassVar[str] = "arXiv:2104.09937"
    cost: ClassVar[str] = "1"
    meta: float = 0.5  # epsilon: the share of the way to the clone

    def __post_init__(self) -> None:
        require(0 < self.meta <= 1, f"meta must lie in (0, 1] but got {self.meta}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        turns = Turns(self.domain(train))
        follow = Lookahead(model, len(turns.sizes), self.meta, session.device)
        train_model(model, train, self.training, stage="training", session=session, order=turns, carry=[follow])
        return Fit(model)
