"""EnD (arXiv:2103.02023): learn features that are unlike where the bias is the same, alike where the class is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.options import require_finite
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.models.base import head_of, with_features
from unspur.parts.pseudo_attributes import attribute_of
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class EnD(LogitsMethod):
    """Entangle and disentangle: features apart within a bias, together within a class across biases (EnD, Eq. 6).

    Features are those before the head, of length 1. The first term is the mean of |cos| over pairs of a batch with the
    same attributes, whatever their labels; the second 1 - the mean of cos over pairs with the same label and other
    attributes. A sample is no pair with itself. A term without a pair in the batch is 0. The authors' code has |sum of
    cos| of each bias, by the number of all pairs, and (1 - cos) / 2, so that beta counts double here. One device.
    """

    name: ClassVar[str] = "end"
    paper: ClassVar[str] = "arXiv:2103.02023"
    cost: ClassVar[str] = "1"
    needs_groups: ClassVar[bool] = True
    one_device: ClassVar[bool] = True
    moves_features: ClassVar[bool] = True
    training: Optimiser = SGD()
    alpha: float = 0.1  # weight of keeping apart what has the same attributes
    beta: float = 0.1  # weight of pulling together what has the same label and other attributes

    def __post_init__(self) -> None:
        require_finite(self)
        require(min(self.alpha, self.beta) >= 0, f"alpha and beta must be from 0 but got {self.alpha} and {self.beta}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be features before a head."""
        head_of(model)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        attribute = attribute_of(train).to(session.device)

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            features, logits = with_features(model, batch.x)
            apart, together = terms(features.float(), batch.y, attribute[batch.index])
            risk = cross_entropy(logits.float(), batch).mean()
            logged = {"risk": risk, "apart": apart, "together": together}
            return Minimised(risk + self.alpha * apart + self.beta * together, logits, logged)

        train_model(model, train, self.training, stage="training", session=session, objective=objective)
        return Fit(model)


def terms(features: Tensor, y: Tensor, attribute: Tensor) -> tuple[Tensor, Tensor]:
    """The mean |cos| of pairs with the same attribute, and 1 - the mean cos of those with the same label alone."""
    unit = functional.normalize(features, dim=1)
    cosine = unit @ unit.T
    same_bias, same_class = attribute[:, None] == attribute, y[:, None] == y
    others = ~torch.eye(len(y), dtype=torch.bool, device=y.device)
    pairs, across = same_bias & others, same_class & ~same_bias
    apart = (cosine.abs() * pairs).sum() / pairs.sum().clamp(min=1)
    together = (across.sum() - (cosine * across).sum()) / across.sum().clamp(min=1)
    return apart, together
