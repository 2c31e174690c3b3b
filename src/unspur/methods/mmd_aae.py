"""MMD-AAE (CVPR 2018): learn codes of the features that tell classes, but neither domains nor a drawn prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.core.options import require_finite
from unspur.core.seeds import seeded
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit
from unspur.methods.domain_method import DomainMethod
from unspur.models.base import head_of
from unspur.parts.adversarial_codes import Coded, code_loss
from unspur.parts.last_layer import check_head
from unspur.parts.logistic import require_bias
from unspur.train.loop import train as train_model
from unspur.train.orders import Even
from unspur.train.session import Session


@dataclass(frozen=True)
class MMDAAE(DomainMethod):
    """Codes of the features that an adversary holds to a prior and a kernel distance across domains (MMD-AAE, Eq. 7).

    Cross-entropy of a classifier on the codes, plus what an autoencoder loses of the features, plus the codes' MMD
    between domains, plus an adversary that tells codes from draws of a Laplace prior. The adversary learns in the same
    step, its gradient reversed for the codes; the paper alternates. The encoder is linear, so that it and the
    classifier become the network's own last layer in the end. The paper chooses the weights on validation data.
    """

    name: ClassVar[str] = "mmd_aae"
    paper: ClassVar[str] = "CVPR 2018"
    cost: ClassVar[str] = "1"
    codes: int = 64  # size of a code
    reconstruction: float = 0.1  # lambda_0
    gamma: float = 1.0  # lambda_1: of the MMD
    adversary: float = 0.1  # lambda_2

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.codes >= 1, f"codes must be at least 1 but got {self.codes}.")
        weights = [self.reconstruction, self.gamma, self.adversary]
        require(min(weights) >= 0, f"reconstruction, gamma and adversary must be from 0 but got {weights}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be several domains, and a last linear layer that can hold encoder and classifier."""
        super().check(model, train, val)
        require_bias(check_head(model, train))

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        domain = self.domain(train)
        with seeded(session.seed, "codes"):
            coded = Coded(model, head_of(model), self.codes)
        loss = code_loss(coded, domain, self.reconstruction, self.gamma, self.adversary)
        order = Even(domain)
        train_model(coded, train, self.training, stage="training", session=session, objective=loss, order=order)
        coded.give_head()
        return Fit(model.eval())
