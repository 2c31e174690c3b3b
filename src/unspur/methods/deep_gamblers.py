"""Deep Gamblers (arXiv:1907.00208): 1. ERM.  2. One more output abstains, which pays less than being right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.models.base import head_of
from unspur.parts.abstaining import WithUnits, gamblers_loss
from unspur.train.loop import train as train_model
from unspur.train.moments import Minimised
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class DeepGamblers(LogitsMethod):
    """Learn one more output that abstains, as a bet that pays o when it is right (Deep Gamblers, Eq. 6).

    Cross-entropy of the classes alone first, then -log(p_y + p_abstain / o). A payoff above the number of classes makes
    abstaining worse than guessing. `unspur evaluate RUN --coverage C` has it as the mode learned.
    """

    name: ClassVar[str] = "deep_gamblers"
    paper: ClassVar[str] = "arXiv:1907.00208"
    cost: ClassVar[str] = "2"
    one_device: ClassVar[bool] = True
    erm: Optimiser = SGD()  # before, without the new output
    training: Optimiser = SGD()  # with it
    payoff: float = 2.2  # o, above 1 and at most the number of classes

    def __post_init__(self) -> None:
        require(self.payoff > 1, f"payoff must be above 1 but got {self.payoff}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be features before a head."""
        head_of(model)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        train_model(model, train, self.erm, stage="erm", session=session)
        both, classes = WithUnits(model, 1, session.seed), head_of(model).out_features

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            logits, units = both.outputs(model, batch.x)
            return Minimised(gamblers_loss(logits, units[:, 0], batch.y, self.payoff), logits)

        train_model(both, train, self.training, stage="training", session=session, objective=objective)
        said = []
        if self.payoff > classes:
            said = [
                f"With {classes} classes a payoff of {self.payoff:g} makes abstaining worse than guessing; lower it."
            ]
        return Fit(model.eval(), selector=both.selector("reservation"), warnings=said)
