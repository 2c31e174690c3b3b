"""Why pruning keeps the shortcut, and what mends it: the theory of DCWP (section 3, appendices B and C).

One feature equals the label, each of D spurious features equals it with probability p and independently of the others;
everything is +-1. A linear classifier with weights w_inv and w_sp was trained on that. Each weight is then kept with a
probability of its own, pi_inv or pi_sp, independently. alpha = w_sp / w_inv is the weight ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from unspur.errors import require


def training_bound(pi_inv: float, pi_sp: Tensor, alpha: Tensor, p: float) -> float:
    """The bound (3) on the error of pruned classifiers where the shortcut holds, 1/2 <= p <= 1.

    2 exp(-2 (pi_inv + (2p - 1) sum alpha pi_sp)^2 / (1 + 4 sum alpha^2)). Above 1 it says nothing.

    >>> round(training_bound(1.0, torch.ones(15), torch.ones(15), p=0.99), 5)
    0.00062
    """
    return mixture_bound(pi_inv, pi_sp, alpha, p, phi=0.0)


def unbiased_bound(pi_inv: float, alpha: Tensor) -> float:
    """The bound (4) on the error where the spurious features are random (p = 1/2), which is also (10).

    2 exp(-2 pi_inv^2 / (1 + 4 sum alpha^2)): the spurious weights' keep probabilities are gone, and so it is above 1
    unless sum alpha^2 < (2 pi_inv^2 / log 2 - 1) / 4, at most 0.471.

    >>> round(unbiased_bound(1.0, torch.full((15,), 0.15)), 3), round(unbiased_bound(1.0, torch.ones(15)), 3)
    (0.854, 1.935)
    """
    return mixture_bound(pi_inv, torch.zeros_like(alpha), alpha, p=0.5, phi=0.0)


def mixture_bound(pi_inv: float, pi_sp: Tensor, alpha: Tensor, p: float, phi: float) -> float:
    """The bound (9): in a share ``phi`` of cases, from 0 to 1 - 1/(2p), a spurious feature is set against the label.

    2 exp(-2 (pi_inv + (2p(1 - phi) - 1) sum alpha pi_sp)^2 / (1 + 4 sum alpha^2)), by Hoeffding's inequality. Remarks:

    - It holds only where the mean in the numerator is not negative; with w_inv > 0, alpha >= 0 and phi in its range it
      never is. Hoeffding's one-sided inequality would also do without the leading 2.
    - (25) counts a tie, such as a mask that keeps nothing, as right. By (2), with sgn(0) = 0, it costs one half. The
      bound holds all the same, since Hoeffding's inequality covers ties.
    - The spurious features must be independent, so the mixture (5) has to be drawn for each feature alone. Drawn for
      whole samples, as over-sampling of bias-conflicting samples does (14), it makes them dependent, and then the error
      can exceed the bound.

    >>> round(mixture_bound(1.0, torch.ones(15), torch.full((15,), 0.15), p=0.9, phi=debiasing_weight(0.9)), 3)
    0.854
    """
    require(0.5 <= p <= 1, f"The agreement p must be from 0.5 to 1 but is {p}; below 0.5 the bounds do not hold.")
    require(
        -1e-12 <= phi <= debiasing_weight(p) + 1e-12,
        f"The mixture weight phi must be from 0 to 1 - 1/(2p) = {debiasing_weight(p):.4g} but is {phi}.",
    )
    require(bool((alpha >= 0).all()), "The weight ratios alpha must not be negative: the bounds do not hold then.")
    require(
        0 <= pi_inv <= 1 and bool(((pi_sp >= 0) & (pi_sp <= 1)).all()),
        "The keep probabilities pi_inv and pi_sp must be from 0 to 1.",
    )
    mean = pi_inv + (2 * p * (1 - phi) - 1) * float((alpha * pi_sp).sum())
    return 2 * math.exp(-2 * mean**2 / (1 + 4 * float(alpha.square().sum())))


def debiasing_weight(p: float) -> float:
    """The mixture weight 1 - 1/(2p) at which spurious features turn random, from (32).

    >>> round(debiasing_weight(0.9), 4)
    0.4444
    """
    return 1 - 1 / (2 * p)


def pruned_error(
    pi_inv: float, pi_sp: Tensor, alpha: Tensor, p: float, *, samples: int, generator: torch.Generator
) -> float:
    """The error (2) of randomly pruned classifiers, E[1 - Y sgn(O)] / 2, over ``samples`` draws of mask and input.

    ``p`` is any probability here; p (1 - phi) gives the mixture of (5). O Y / w_inv = m_inv + sum alpha m_sp Z Y.
    """
    shape = (samples, len(alpha))
    agrees = torch.rand(shape, generator=generator) < p
    kept = torch.rand(shape, generator=generator) < pi_sp
    spurious = torch.where(agrees, alpha, -alpha).masked_fill(~kept, 0).sum(1)
    score = (torch.rand(samples, generator=generator) < pi_inv) + spurious
    return float((1 - score.sign()).mean() / 2)


def spurious_limit(p: float) -> float:
    """Where gradient flow takes a spurious weight in infinite time: log(p / (1 - p)) / 2.

    >>> round(spurious_limit(0.9), 4)
    1.0986
    """
    return math.log(p / (1 - p)) / 2


@dataclass(frozen=True, eq=False)
class Start:
    """Where Proposition 1's gradient flow starts: 1/2 < p < 1, w_inv > 0 and 0 < w_sp < log(p / (1 - p)) / 2."""

    p: float
    w_inv: float
    w_sp: Tensor  # (D,)

    def __post_init__(self) -> None:
        require(0.5 < self.p < 1, f"The agreement p must be above 0.5 and below 1 but is {self.p}.")
        require(self.w_inv > 0, f"The invariant weight must start above 0 but starts at {self.w_inv}.")
        limit = spurious_limit(self.p)
        require(
            bool(((self.w_sp > 0) & (self.w_sp < limit)).all()),
            f"Spurious weights must start between 0 and log(p / (1 - p)) / 2 = {limit:.4g}, both excluded.",
        )


def gradient_flow(start: Start, times: Tensor, steps: int = 100) -> tuple[Tensor, Tensor]:
    """w_inv (T,) and w_sp (T, D) at increasing ``times``, following -grad L for the exponential loss.

    L = e^(-w_inv) prod_i (p e^(-w_i) + (1 - p) e^(w_i)), hence dw_inv/dt = L and
    dw_i/dt = L (p e^(-w_i) - (1 - p) e^(w_i)) / (p e^(-w_i) + (1 - p) e^(w_i)) = L tanh(log(p / (1 - p)) / 2 - w_i).
    Runge-Kutta of fourth order, ``steps`` from each time to the next, equal in log(e^w_inv(0) + t): no weight moves
    faster than that clock.
    """
    require(
        bool((times.diff() > 0).all()) and float(times[0]) >= 0,
        f"Times must increase from 0 or later, but are {times.tolist()}.",
    )
    limit, unit = spurious_limit(start.p), math.exp(start.w_inv)

    def velocity(clock: float, w: Tensor) -> Tensor:
        up = start.p * torch.exp(-w[1:]) + (1 - start.p) * torch.exp(w[1:])
        loss = torch.exp(clock - w[0]) * up.prod()  # dt = e^clock dclock
        return torch.cat([loss[None], loss * torch.tanh(limit - w[1:])])

    w = torch.cat([torch.tensor([start.w_inv], dtype=torch.float64), start.w_sp.double()])
    clock, path = math.log(unit), []
    for time in times.tolist():
        h = (math.log(unit + time) - clock) / steps
        for _ in range(steps):
            k1 = velocity(clock, w)
            k2 = velocity(clock + h / 2, w + h / 2 * k1)
            k3 = velocity(clock + h / 2, w + h / 2 * k2)
            k4 = velocity(clock + h, w + h * k3)
            w, clock = w + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), clock + h
        path.append(w)
    weights = torch.stack(path)
    return weights[:, 0], weights[:, 1:]


def invariant_weight_bounds(start: Start, t: float) -> tuple[float, float]:
    """Bounds (37) and (38) on w_inv(t), which grows for ever.

    log(e^w_inv(0) + [4p(1-p)]^(D/2) t) and log(e^w_inv(0) + t prod_i (p e^(-w_i(0)) + sqrt(p(1-p)))).

    >>> [round(x, 4) for x in invariant_weight_bounds(Start(0.9, 0.1, torch.tensor([0.1, 0.2])), t=10)]
    [1.5487, 2.5384]
    """
    spread = math.sqrt(start.p * (1 - start.p))
    fastest = float((start.p * torch.exp(-start.w_sp.double()) + spread).prod())
    slowest = (2 * spread) ** len(start.w_sp)
    return math.log(math.exp(start.w_inv) + slowest * t), math.log(math.exp(start.w_inv) + fastest * t)


def spurious_weight_lower(start: Start, t: float, m: float) -> Tensor:
    """The lower bound (39) on each w_sp(t), where w_inv has not passed ``m`` by then.

    log(p/(1-p))/2 + log tanh(artanh(sqrt((1-p)/p) e^w_sp(0)) + e^(-m) 2^(D-1) [p(1-p)]^(D/2) t).

    The paper closes artanh's parenthesis after the second term, in (39), (41) and the range of c below them. Printed
    so, tanh and artanh cancel, and the "bound" exceeds w_sp(t), in time even the limit of w_sp. The integral of
    dw / (p e^-w - (1-p) e^w) is artanh(sqrt((1-p)/p) e^w) / sqrt(p(1-p)), which gives the form above.
    """
    dim, spread = len(start.w_sp), math.sqrt(start.p * (1 - start.p))
    begun = torch.atanh(torch.exp(start.w_sp.double() - spurious_limit(start.p)))
    return spurious_limit(start.p) + torch.tanh(begun + math.exp(-m) * 2 ** (dim - 1) * spread**dim * t).log()


def weight_ratio_lower(start: Start, t: float, horizon: float) -> Tensor:
    """The lower bound (41) on each alpha(t), t <= ``horizon``: (39) over (38), with (38) at ``horizon`` for M."""
    require(t <= horizon, f"The time t = {t} lies beyond the horizon {horizon}; the bound holds up to it.")
    m = invariant_weight_bounds(start, horizon)[1]
    return spurious_weight_lower(start, t, m) / invariant_weight_bounds(start, t)[1]


def biased_weight_ratio_lower(w_inv: float, w_sp: Tensor, t: float) -> Tensor:
    """The bound (42) on each alpha(t) as p tends to 1, from the starting weights: slow decay at best.

    w_sp(0) / log(e^w_inv(0) + t exp(-sum w_sp(0))). It is what (41) tends to for D >= 2 (with D = 1 the numerator of
    (41) tends to log(e^w_sp(0) + e^(-M) t), which is more). The summary's "c / log t < alpha(t) over 0 < t < T" cannot
    be meant literally, since c / log t is unbounded near t = 1. And the decay is the bound's alone: at p = 1 every
    weight grows by the same log(1 + (D+1) t e^(-w_inv(0) - sum w_sp(0))) / (D+1), so alpha tends to 1, as in Figure 2.

    >>> biased_weight_ratio_lower(1.0, torch.tensor([0.5, 0.5]), t=0.0).tolist()
    [0.5, 0.5]
    """
    return w_sp.double() / math.log(math.exp(w_inv) + t * math.exp(-float(w_sp.sum())))


def expected_cosine(dim: int, p: float, q: float) -> float:
    """Lemma 1: the expected cosine of two embeddings of one class, from environments with agreements ``p`` and ``q``.

    (1 + D (2p - 1)(2q - 1)) / (D + 1). q = 1/2 gives (43), q = p gives (44). The embedding's matrix W must satisfy
    W^T W = 1, so it needs at least D + 1 rows; "semi-orthogonal" with fewer rows (W W^T = 1) does not do.

    >>> expected_cosine(15, 0.99, 0.5), round(expected_cosine(15, 0.99, 0.99), 4)
    (0.0625, 0.9629)
    """
    return (1 + dim * (2 * p - 1) * (2 * q - 1)) / (dim + 1)


@dataclass(frozen=True, eq=False)
class BiasCurves:
    """Appendix Figure 2: what a trained linear classifier does as the bias grows; rows are p, columns are seeds."""

    p: tuple[float, ...]
    weight_ratio: Tensor  # (len(p), seeds): mean(w_sp) / w_inv
    unbiased_accuracy: Tensor  # (len(p), seeds): where spurious features are random


def bias_curves(
    p: tuple[float, ...] = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
    *,
    dim: int = 15,
    seeds: int = 15,
    epochs: int = 500,
    samples: int = 1024,
    lr: float = 0.1,
    test_samples: int = 10_000,
) -> BiasCurves:
    """Train a linear classifier without bias for each p and seed, as for appendix Figure 2.

    The paper gives dim, seeds, epochs and the batch size of 1,024. Ours where it is silent: one fixed batch is the
    training set, plain gradient descent with rate ``lr``, weights start uniform in +-1/sqrt(D + 1). The rate was
    picked as one that ends near the paper's ratio of 1; with others the ratio rises with p as well. Binary
    cross-entropy with labels 0 and 1 is log(1 + e^(-Y w^T X)) with labels +-1, so that only X Y matters. A seed draws
    the same numbers for every p.
    """
    inputs, weights, tests = [], [], []
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        weights.append((2 * torch.rand(dim + 1, generator=generator) - 1) / math.sqrt(dim + 1))
        draw = torch.rand(samples, dim, generator=generator)
        inputs.append(torch.stack([_times_label(draw < agreement) for agreement in p]))
        tests.append(_times_label(torch.rand(test_samples, dim, generator=generator) < 0.5))
    x = torch.stack(inputs, dim=1)  # (p, seeds, samples, 1 + dim)
    w = torch.stack(weights).expand(len(p), -1, -1)[..., None]
    for _ in range(epochs):
        w = w + lr / samples * x.mT @ torch.sigmoid(-(x @ w))
    correct = ((torch.stack(tests) @ w).sign() + 1) / 2  # a tie counts one half, as in (2)
    return BiasCurves(p, w[..., 1:, 0].mean(-1) / w[..., 0, 0], correct.mean(dim=(-2, -1)))


def _times_label(agrees: Tensor) -> Tensor:
    """X Y: 1 for the invariant feature, then +-1 for each spurious one."""
    return functional.pad(torch.where(agrees, 1.0, -1.0), (1, 0), value=1.0)
