"""Focal loss (arXiv:1708.02002): plain training in which what is fitted well counts for less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.train.loop import train as train_model
from unspur.train.losses import Loss, focal
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session

# Large-LR, Table 2: SGD at a constant rate in batches of 100 until every sample is fitted.
TABLE = SGD(lr=0.01, momentum=0.0, batch_size=100, epochs=30, until_accuracy=1.0)


@dataclass(frozen=True)
class Focal(LogitsMethod):
    """Weigh every sample's loss by (1 - p)^gamma, p being the probability of its label (Focal loss, Eq. 4).

    The weight is differentiated as well. Large-LR's Table 2 tries gamma from 0.001 to 25 and names none as the best; 2
    is the loss's own paper's.
    """

    name: ClassVar[str] = "focal"
    paper: ClassVar[str] = "arXiv:1708.02002"
    cost: ClassVar[str] = "1"
    training: Optimiser = TABLE
    gamma: float = 2.0  # how much less what is fitted well counts; 0: cross-entropy

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.gamma >= 0, f"gamma must be a number from 0 but got {self.gamma}.")

    @property
    def loss(self) -> Loss:
        return focal(self.gamma)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        train_model(model, train, self.training, stage="training", session=session, loss=self.loss)
        return Fit(model)
