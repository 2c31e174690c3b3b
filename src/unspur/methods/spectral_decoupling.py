"""Spectral decoupling (arXiv:2011.09468): plain training with a penalty on the logits, so that no feature starves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from unspur.core.options import require_finite
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.train.loop import train as train_model
from unspur.train.losses import Loss, cross_entropy
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class SpectralDecoupling(LogitsMethod):
    """Penalise the squares of the logits, so that features learnt first leave gradient for others (SD, Eq. 15).

    lambda times the mean over a sample's logits; with ``gammas`` the form of section 4.3: lambda_y times the square of
    (y_hat - gamma_y). The paper has one logit for two classes; with one for each, y_hat is read as that of the label.
    """

    name: ClassVar[str] = "spectral_decoupling"
    paper: ClassVar[str] = "arXiv:2011.09468"
    cost: ClassVar[str] = "1"
    training: Optimiser = SGD()
    lams: tuple[float, ...] = (0.1,)  # lambda: strength of the penalty, one for all classes or one each
    gammas: tuple[float, ...] = ()  # gamma_y: what the label's logit is drawn to, one for each class; none: all to 0

    def __post_init__(self) -> None:
        require_finite(self)
        require(len(self.lams) > 0 and min(self.lams) >= 0, f"lams must be numbers from 0 but got {list(self.lams)}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """What is given for each class must be as many as there are."""
        classes = int(train.y.max()) + 1
        for name, values, one in (("lams", self.lams, 1), ("gammas", self.gammas, 0)):
            counts = f"{name} has {len(values)} values for {classes} classes"
            require(len(values) in (one, classes), f"{counts}; give {one or 'none'}, or one for each class.")

    @property
    def loss(self) -> Loss:
        def loss(logits: Tensor, batch: Batch) -> Tensor:
            lam = logits.new_tensor(self.lams)[batch.y if len(self.lams) > 1 else 0]
            if not self.gammas:
                return cross_entropy(logits, batch) + lam * logits.square().mean(1)
            own = logits.gather(1, batch.y[:, None]).squeeze(1) - logits.new_tensor(self.gammas)[batch.y]
            return cross_entropy(logits, batch) + lam * own.square()

        return loss

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        train_model(model, train, self.training, stage="training", session=session, loss=self.loss)
        return Fit(model)
