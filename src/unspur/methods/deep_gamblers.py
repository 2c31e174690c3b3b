"""Deep Gamblers (arXiv:1907.00208): first ERM; then one more output abstains, which pays less than being right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.models.base import head_of
from unspur.parts.abstaining import WithUnits, gamblers_loss
from unspur.train.loop import PASSES
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class DeepGamblers(LogitsMethod):
    """Learn one more output that abstains, as a bet that pays o when it is right (Deep Gamblers, Eq. 6).

    Cross-entropy of the classes alone up to the share ``after`` of the steps, then -log(p_y + p_abstain / o), in one
    training as in the authors' script, so that the rate does not start again. A payoff above the number of classes
    makes abstaining worse than guessing. `unspur evaluate RUN --coverage C` has it as the mode learned.
    """

    name: ClassVar[str] = "deep_gamblers"
    paper: ClassVar[str] = "arXiv:1907.00208"
    cost: ClassVar[str] = "1"
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD()
    after: float = 1 / 3  # share of the steps before anything is bet: 100 of 300 epochs
    payoff: float = 2.2  # o, above 1 and at most the number of classes

    def __post_init__(self) -> None:
        require_finite(self)
        require(0 <= self.after <= 1, f"after must lie in [0, 1] but got {self.after}.")
        require(self.payoff > 1, f"payoff must be above 1 but got {self.payoff}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be features before a head."""
        head_of(model)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        both, classes = WithUnits(model, 1, session.seed), head_of(model).out_features
        begin = round(self.after * sum(PASSES.rounds(len(train), self.training, 1)))

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            if step < begin:
                logits = model(batch.x).float()
                return Minimised(cross_entropy(logits, batch), logits)
            logits, units = both.outputs(model, batch.x)
            return Minimised(gamblers_loss(logits, units[:, 0], batch.y, self.payoff), logits)

        train_model(both, train, self.training, stage="training", session=session, objective=objective)
        said = []
        if self.payoff > classes:
            said = [
                f"With {classes} classes a payoff of {self.payoff:g} makes abstaining worse than guessing; lower it."
            ]
        return Fit(model.eval(), selector=both.selector("reservation"), warnings=said)
