"""SelectiveNet (arXiv:1901.09192): learn to answer and which share to answer, together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn
from torch.nn import functional

from unspur.core.options import require_finite
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.models.base import head_of
from unspur.parts.abstaining import WithUnits, selective_loss
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class SelectiveNet(LogitsMethod):
    """Learn classes and a unit that selects what to answer, at a target coverage (SelectiveNet, Eq. 2 and 3).

    alpha (the selected samples' mean loss + lambda max(0, c - coverage)^2) + (1 - alpha) an auxiliary head's mean loss
    on all samples, which is not kept. The unit is one sigmoid on the features that the last layer reads, normalised
    over the batch, where the paper has a hidden layer before its normalisation. The selected loss is divided by the
    coverage, as Eq. 2 says; the code that is copied most does not. `unspur evaluate RUN --coverage C` has it as the
    mode learned. One device.
    """

    name: ClassVar[str] = "selectivenet"
    paper: ClassVar[str] = "arXiv:1901.09192"
    cost: ClassVar[str] = "1"
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD()
    coverage: float = 0.9  # c: share of the samples that is to be selected
    lam: float = 32.0  # lambda: what missing coverage costs
    alpha: float = 0.5  # weight of the selective loss against the auxiliary head's

    def __post_init__(self) -> None:
        require_finite(self)
        require(0 < self.coverage <= 1, f"coverage must lie in (0, 1] but got {self.coverage}.")
        require(self.lam >= 0, f"lam must be a number from 0 but got {self.lam}.")
        require(0 <= self.alpha <= 1, f"alpha must lie in [0, 1] but got {self.alpha}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be features before a head."""
        head_of(model)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        classes = head_of(model).out_features
        both = WithUnits(model, 1 + classes, session.seed, normal=True)  # which to answer, and another head

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            logits, units = both.outputs(model, batch.x)
            selected = units[:, 0].sigmoid()
            own = selective_loss(cross_entropy(logits, batch), selected, self.coverage, self.lam)
            beside = functional.cross_entropy(units[:, 1:], batch.y)
            return Minimised(self.alpha * own + (1 - self.alpha) * beside, logits, {"coverage": selected.mean()})

        train_model(both, train, self.training, stage="training", session=session, objective=objective)
        return Fit(model.eval(), selector=both.selector("selection"))
