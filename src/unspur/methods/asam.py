"""ASAM (arXiv:2102.11600): every step with the gradient where the loss is worst nearby."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.train.loop import train as train_model
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session

# Large-LR, Table 2: SGD at a constant rate in batches of 100 until every sample is fitted.
TABLE = SGD(lr=0.01, momentum=0.0, batch_size=100, epochs=30, until_accuracy=1.0)


@dataclass(frozen=True)
class ASAM(LogitsMethod):
    """Adaptive sharpness-aware minimisation: two passes a step, the second where the loss is worst (ASAM, Eq. 9).

    Large-LR's Table 2 tries rho from 0.01 to 10 and names none as the best; 1 is the optimiser's own paper's for
    CIFAR-100. train/sharpness.py says what is read where. It works in any other method as `training.asam`.
    """

    name: ClassVar[str] = "asam"
    paper: ClassVar[str] = "arXiv:2102.11600"
    cost: ClassVar[str] = "2"
    training: Optimiser = TABLE
    rho: float = 1.0  # radius of the neighbourhood, in units of each weight's own size

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.rho > 0, f"rho must be a number above 0 but got {self.rho}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        train_model(model, train, replace(self.training, asam=self.rho), stage="training", session=session)
        return Fit(model)
