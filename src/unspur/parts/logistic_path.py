"""Logistic regression on cached features, from strong to weak L2: exact, and without a learning rate to choose."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from unspur.core.progress import Done
from unspur.parts.heads import Head

STEPS = 100  # of L-BFGS for each strength, each beginning where the stronger one ended
SMALLEST = 1e-4  # deviation of a feature below which it is not scaled up


def logistic_path(
    x: Tensor,
    y: Tensor,
    l2s: Sequence[float],
    classes: int,
    *,
    weight: Tensor | None = None,
    progress: Done = lambda done: None,
) -> list[Head]:
    """A head for each strength, in the order given.

    Minimises the mean cross-entropy, in which samples count by ``weight``, plus l2 / 2 times the squared weights.
    Features are scaled to mean 0 and deviation 1 (``weight`` counts there, too), but the heads take unscaled features.
    """
    share = torch.full_like(x[:, 0], 1 / len(x)) if weight is None else (weight / weight.sum()).to(x)
    mean = share @ x
    scale = (share @ (x - mean).square()).sqrt().clamp_min(SMALLEST)
    scaled = (x - mean) / scale
    w = torch.zeros(classes, x.shape[1], dtype=x.dtype, requires_grad=True)
    b = torch.zeros(classes, dtype=x.dtype, requires_grad=True)
    found: dict[float, Head] = {}
    for l2 in sorted(set(l2s), reverse=True):
        with torch.enable_grad():
            _minimise(w, b, scaled, y, share, l2)
        own = w.detach() / scale
        found[l2] = Head(own, b.detach() - own @ mean)
        progress(len(found) / len(set(l2s)))
    return [found[l2] for l2 in l2s]


def _minimise(w: Tensor, b: Tensor, x: Tensor, y: Tensor, share: Tensor, l2: float) -> None:
    optimiser = torch.optim.LBFGS([w, b], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        losses = functional.cross_entropy(x @ w.T + b, y, reduction="none")
        value = share @ losses + l2 / 2 * w.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
