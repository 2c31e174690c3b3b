"""CVaR-DRO (arXiv:2010.05893): minimise the mean loss of the worst samples of every batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class CVaRDRO(LogitsMethod):
    """Minimise the mean loss of the worst share of each batch, without group labels (CVaR-DRO, Eq. 2 and section 3).

    The share may end within a sample, which then counts in part: of 64 samples the worst 0.1 are 6.4. The batch's own
    conditional value at risk is what the paper's experiments minimise; its bias falls with the batch size. One device.
    """

    name: ClassVar[str] = "cvar_dro"
    paper: ClassVar[str] = "arXiv:2010.05893"
    cost: ClassVar[str] = "1"
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD()
    alpha: float = 0.1  # share of the samples that counts

    def __post_init__(self) -> None:
        require(0 < self.alpha <= 1, f"alpha must lie in (0, 1] but got {self.alpha}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            logits = model(batch.x)
            return Minimised(worst_mean(cross_entropy(logits.float(), batch), self.alpha), logits)

        train_model(model, train, self.training, stage="training", session=session, objective=objective)
        return Fit(model)


def worst_mean(losses: Tensor, alpha: float) -> Tensor:
    """The mean of the largest ``alpha`` of ``losses``, the last of which may count in part.

    >>> worst_mean(torch.tensor([1.0, 4.0, 2.0, 3.0]), 0.375)  # (4 + 3 / 2) / 1.5
    tensor(3.6667)
    """
    count = alpha * len(losses)
    weight = (count - torch.arange(len(losses), device=losses.device)).clamp(0, 1) / count
    return (losses.sort(descending=True).values * weight).sum()
