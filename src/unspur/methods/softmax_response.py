"""Softmax response (arXiv:1705.08500): plain training; abstain where the largest probability is low."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split
from unspur.methods.base import Fit, LogitsMethod
from unspur.train.loop import train as train_model
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class SoftmaxResponse(LogitsMethod):
    """Train plainly, and abstain where the largest probability is low (selective classification, section 3).

    The training is ERM's. `unspur evaluate RUN --coverage C` chooses the threshold on validation data, and its mode
    softmax_response is this one.
    """

    name: ClassVar[str] = "softmax_response"
    paper: ClassVar[str] = "arXiv:1705.08500"
    cost: ClassVar[str] = "1"
    training: Optimiser = SGD()

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        train_model(model, train, self.training, stage="training", session=session)
        return Fit(model)
