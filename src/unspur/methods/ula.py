"""ULA (arXiv:2310.18555): 1. A linear head on given features is the bias.  2. Learn what is left beside its prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from unspur.core.options import require_finite
from unspur.core.seeds import seeded
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.models.base import head_of
from unspur.parts.features import on_features
from unspur.parts.inferred_groups import BestRound, all_logits, label_groups
from unspur.parts.mining import Mined
from unspur.train.loop import train as train_model
from unspur.train.moments import Minimised
from unspur.train.recipe import SGD, Adam, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class ULA(LogitsMethod):
    """Unsupervised logit adjustment: learn beside the prior that a linear head on given features leaves (ULA, Eq. 5).

    The features are those that the network begins with, which should be pretrained or self-supervised; they are
    frozen for the head alone. Training adds tau log p(y | the head's answer) to the logits, and what answers in the end
    does not. The prior is the mean over samples of the head's probabilities at a temperature, as in the authors' code,
    with one sample more of each pair than there is, so that none is impossible. The round is chosen by the mean over
    labels with the head's answers (section 4.2). What the head gets wrong counts as mined.
    """

    name: ClassVar[str] = "ula"
    paper: ClassVar[str] = "arXiv:2310.18555"
    cost: ClassVar[str] = "1 and features"
    network: ClassVar[str] = "pretrained"
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD()
    proxy: Optimiser = Adam(epochs=10)  # of the linear head
    tau: float = 1.0  # how much of the log of the prior is added
    temperature: float = 1.0  # of the head's probabilities, which the prior counts

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.tau >= 0, f"tau must be a number from 0 but got {self.tau}.")
        require(self.temperature > 0, f"temperature must be a number above 0 but got {self.temperature}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        features = on_features(model, train, session, "proxy-features")
        classes = head_of(model).out_features
        with seeded(session.seed, "proxy"):
            head = nn.Linear(features.x.shape[1], classes)
        train_model(head, features, self.proxy, stage="proxy", session=session)
        chance = (all_logits(head, features, session) / self.temperature).softmax(1)
        answer = chance.argmax(1)
        adjust = self.tau * log_prior(chance, train.y)[answer].to(session.device)

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            logits = model(batch.x).float()
            return Minimised(functional.cross_entropy(logits + adjust[batch.index], batch.y, reduction="none"), logits)

        group = None
        if val is not None:
            held = on_features(model, val, session, "proxy-val-features")
            group = label_groups(val.y, all_logits(head, held, session).argmax(1))
        best = BestRound(model, val, group, session, mean=True)
        train_model(model, train, self.training, stage="training", session=session, objective=objective, carry=[best])
        mined = Mined(answer != train.y, None, train.y)
        return Fit(model, mining=mined, figures={"mean_inferred_groups": best.restore()})


def log_prior(chance: Tensor, y: Tensor) -> Tensor:
    """log p(y | answer): a row for each answer, of (n + 1) / (its sum + classes), where n sums the answer's chances.

    >>> import torch
    >>> chance = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> log_prior(chance, torch.tensor([0, 0, 1, 1])).exp()  # 3 and 1.5 of 4.5; 1 and 2.5 of 3.5
    tensor([[0.6667, 0.3333],
            [0.2857, 0.7143]])
    """
    count = chance.T @ functional.one_hot(y, chance.shape[1]).to(chance) + 1.0
    return (count / count.sum(1, keepdim=True)).log()
