"""OSP (arXiv:2010.07853): for each class, cover it while others are rarely taken for it; abstain elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.models.base import head_of
from unspur.parts.one_sided import Multipliers
from unspur.train.loop import train as train_model
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class OSP(LogitsMethod):
    """One-sided prediction: cover each class under a bound on what is wrongly taken for it (OSP, Eq. 9 and 10).

    The mean over classes k (the paper: the sum) of the mean of -log f_k over its samples + lambda_k (the mean of
    -log(1 - f_k) over all *other* samples - phi_k) + mu phi_k. The network and the slacks phi descend, the multipliers
    lambda ascend, around mu, where they begin; slacks begin at the first batch's mistakes. These starts and the rates
    are ours: multipliers leave mu by sqrt(rate / slack_rate) times what mistakes fall by, so slacks are the faster. A
    public copy has -log(1 - f) of the sample's own class, which unlearns it. The classes are one softmax, so that with
    two of them mu changes nothing but the scale of class-balanced cross-entropy. `unspur evaluate RUN --coverage C`,
    mode softmax_response, is the paper's threshold. One device.
    """

    name: ClassVar[str] = "osp"
    paper: ClassVar[str] = "arXiv:2010.07853"
    cost: ClassVar[str] = "1"
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD()
    mu: float = 0.49  # what a slack costs: 0.49 or 1.67; the larger, the fewer mistakes and answers
    slack_rate: float = 1e-2  # step size of the slacks
    rate: float = 1e-3  # step size of the multipliers

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.mu > 0, f"mu must be a number above 0 but got {self.mu}.")
        rates = [self.slack_rate, self.rate]
        require(min(rates) > 0, f"slack_rate and rate must be above 0 but got {rates}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        duals = Multipliers(head_of(model).out_features, self.mu, self.slack_rate, self.rate, session.device)
        train_model(
            model, train, self.training, stage="training", session=session, objective=duals.objective, carry=[duals]
        )
        lam, slack = duals.lam.tolist(), None if duals.slack is None else duals.slack.tolist()
        said, off = [], lam.count(0)
        if off:
            said = [f"Of {len(lam)} multipliers {off} ended at 0: for such a class its constraint was off; lower rate."]
        return Fit(model, figures={"multipliers": lam, "slacks": slack}, warnings=said)
