"""What masking does to the least complex model: MaskTune's Propositions 1 and 2 (arXiv:2210.00055, 2.1, 2.2, C).

**Proposition 1.** Of all models that fit the training data the least complex is taken, first on the data and then on
masked data. If the second model fits the unmasked data, too, it is at least as complex as the first. It must: the proof
calls both models candidates of the first choice, and a model that fits masked samples only need not be one.
``min_norm_masked`` is the linear case, in which it always is, since a weight on a masked feature costs and gains
nothing; with masks that differ from sample to sample it need not be, and the complexity may fall (``fits``).

**Proposition 2.** Two linear models fit n samples of d features exactly, each with the least norm: one sees the
features ``z`` (d - 1 of them) and ``s``, the other has ``s`` masked. The proposition says that they agree on a new
(z, s) if and only if s is what z predicted in training. One condition stands in its proof alone: the first model must
use s at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspur.errors import require


def min_norm(x: Tensor, y: Tensor) -> Tensor:
    """The shortest theta with x theta = y: x^T (x x^T)^-1 y, for samples in rows that are linearly independent.

    >>> min_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([25.0]))
    tensor([3., 4.])
    """
    samples, features = x.shape
    require(
        int(torch.linalg.matrix_rank(x)) == samples,
        f"The {samples} samples of {features} features are not linearly independent, so no linear model fits every "
        "target; give fewer samples or more features.",
    )
    solved: Tensor = torch.linalg.solve(x @ x.T, y)
    return x.T @ solved


def min_norm_masked(x: Tensor, y: Tensor, keep: Tensor) -> Tensor:
    """The shortest theta that fits samples of which only what ``keep`` (features, or samples x features) says is seen.

    >>> min_norm_masked(torch.tensor([[3.0, 4.0]]), torch.tensor([25.0]), torch.tensor([0, 1]))
    tensor([0.0000, 6.2500])
    """
    return min_norm(x * keep, y)


def fits(theta: Tensor, x: Tensor, y: Tensor, tolerance: float = 1e-8) -> bool:
    """Whether a linear model has zero loss on every sample."""
    return bool(((x @ theta - y).abs() <= tolerance).all())


@dataclass(frozen=True, eq=False)
class MinNormPair:
    """The two models of Proposition 2, and how the masked feature follows from the others in the training data."""

    theta_with: Tensor  # (d - 1,): Eq. 7, of the model that sees s
    w: Tensor  # (): the weight which that model gives to s
    theta_without: Tensor  # (d - 1,): Eq. 8, of the model that does not
    beta: Tensor  # (d - 1,): Z^T (Z Z^T)^-1 S, so that s = beta^T z on every training sample


def fit_pair(z: Tensor, s: Tensor, y: Tensor) -> MinNormPair:
    """Fit both models (Eq. 3 to 8) to features ``z`` (n, d - 1), the feature to mask ``s`` (n,) and targets ``y`` (n,).

    The appendix writes Y in R^d; there is one target a sample, so it is in R^n.

    >>> pair = fit_pair(torch.tensor([[1.0, 0.0]]), torch.tensor([1.0]), torch.tensor([2.0]))
    >>> pair.theta_with.tolist(), pair.w.item(), pair.theta_without.tolist()
    ([1.0, 0.0], 1.0, [2.0, 0.0])
    """
    both = min_norm(torch.cat([z, s[:, None]], dim=1), y)
    return MinNormPair(theta_with=both[:-1], w=both[-1], theta_without=min_norm(z, y), beta=min_norm(z, s))


def predictions(pair: MinNormPair, z: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """What the models with and without ``s`` say about new samples ``z`` (m, d - 1), ``s`` (m,)."""
    return z @ pair.theta_with + s * pair.w, z @ pair.theta_without


def predicted_gap(pair: MinNormPair, z: Tensor, s: Tensor) -> Tensor:
    """By how much the first prediction exceeds the second: w (s - beta^T z), which is Eq. 9 minus its left-hand side.

    Hence they agree if and only if s = beta^T z **or w = 0**. The proposition as printed lacks the second case, and is
    false then: a first model that gives s no weight agrees with the second everywhere. Its proof assumes w != 0. By the
    Sherman-Morrison formula w = beta^T theta_without / (1 + |beta|^2), so w = 0 exactly where what z tells about s is
    orthogonal to what it tells about y.

    >>> pair = fit_pair(torch.tensor([[1.0, 0.0]]), torch.tensor([1.0]), torch.tensor([2.0]))
    >>> predicted_gap(pair, torch.tensor([[3.0, 5.0], [3.0, 5.0]]), torch.tensor([3.0, 0.0])).tolist()
    [0.0, -3.0]
    """
    return pair.w * (s - z @ pair.beta)


def predicted_agreement(pair: MinNormPair, z: Tensor, s: Tensor, tolerance: float = 1e-8) -> Tensor:
    """Whether the two models agree on each new sample, to ``tolerance``, by the corrected proposition."""
    return predicted_gap(pair, z, s).abs() <= tolerance
