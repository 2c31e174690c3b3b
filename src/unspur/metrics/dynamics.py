"""What bias-conflicting samples do to training ("Large Learning Rates ...", 6 and B): pure functions of one step.

Losses are those of the samples of a batch, one each; ``conflicting`` says which of them break the training correlation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor, nn

EARLY = 5  # epochs: most of what a rate does happens in the first 1,000 steps (D.4)


def loss_ratio(losses: Tensor, conflicting: Tensor) -> float | None:
    """The share of a batch's loss that its bias-conflicting samples cause: sum over them / sum over all (6).

    Proposition 1 divides by the aligned samples' loss instead; Figure 12, and this, by the whole batch's. A batch
    without conflicting samples has ratio 0; one without any loss has none.

    >>> loss_ratio(torch.tensor([1.0, 6.0, 1.0]), torch.tensor([False, True, False]))
    0.75
    """
    losses = losses.detach().double()
    total = float(losses.sum())
    return float(losses[conflicting].sum()) / total if total else None


def max_loss_ratio(ratios: Iterable[float | None]) -> float | None:
    """The largest loss ratio met in training (Figure 12); None if no step had one.

    >>> max_loss_ratio([0.0, None, 0.75, 0.5])
    0.75
    """
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def early_loss_ratio(epochs: Iterable[Sequence[float | None]], first: int = EARLY) -> float | None:
    """The mean loss ratio over the steps of the ``first`` epochs; None if no step had one.

    The largest ratio lies so near to 1 at every rate that it hardly tells rates apart: a single batch in which all
    aligned samples are fitted is enough. The mean does not saturate.

    >>> early_loss_ratio([[0.25, None], [0.75], [1.0]], first=2)
    0.5
    """
    known = [ratio for epoch in islice(epochs, first) for ratio in epoch if ratio is not None]
    return sum(known) / len(known) if known else None


class MeanLosses(NamedTuple):
    """Mean losses of the aligned and of the conflicting samples; None where there are none."""

    aligned: float | None
    conflicting: float | None

    @property
    def ratio(self) -> float | None:
        """Aligned over conflicting (supplement B); near 1, both kinds are fitted alike."""
        return self.aligned / self.conflicting if self.aligned is not None and self.conflicting else None


def mean_losses(losses: Tensor, conflicting: Tensor) -> MeanLosses:
    """The mean loss of aligned against conflicting samples (supplement B).

    >>> mean_losses(torch.tensor([1.0, 6.0, 2.0]), torch.tensor([False, True, False]))
    MeanLosses(aligned=1.5, conflicting=6.0)
    """
    losses = losses.detach().double()
    return MeanLosses(_mean(losses[~conflicting]), _mean(losses[conflicting]))


def parameter_norm(model: nn.Module) -> float:
    """The 2-norm of all parameters as one vector (6).

    >>> model = nn.Linear(2, 1)
    >>> _ = model.weight.data.copy_(torch.tensor([[1.0, 2.0]])), model.bias.data.fill_(2.0)
    >>> parameter_norm(model)
    3.0
    """
    norms = [parameter.detach().double().norm() for parameter in model.parameters()]
    return float(torch.stack(norms).norm()) if norms else 0.0


def logit_norm(logits: Tensor) -> float:
    """The mean over samples of the 2-norm of their logits (6).

    >>> logit_norm(torch.tensor([[3.0, -4.0], [0.0, 1.0]]))
    3.0
    """
    return float(logits.detach().double().norm(dim=1).mean())


def _mean(losses: Tensor) -> float | None:
    return float(losses.mean()) if len(losses) else None
