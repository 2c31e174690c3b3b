"""Multinomial logistic regression with an L1 penalty, or a penalty on the distance from its start, solved exactly."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.errors import require
from unspur.models.base import head_of

ENOUGH = 1e-6  # a fit ends at a step in which no coefficient moves further than this


class Penalty(NamedTuple):
    """What is added to the weighted mean of cross-entropy."""

    l1: Tensor | float = 0.0  # times the magnitudes of all weights, not of biases; a number for each fit
    l2: Tensor | float = 0.0  # times the squared distance of weights and biases from those at first


class Heads(NamedTuple):
    """Linear layers for the same features: (fits, classes, features) and (fits, classes)."""

    weight: Tensor
    bias: Tensor

    def logits(self, x: Tensor) -> Tensor:
        """(fits, samples, classes)"""
        return x.to(self.weight) @ self.weight.mT + self.bias[:, None]

    def right(self, x: Tensor, y: Tensor) -> Tensor:
        """Which samples each gets right: (fits, samples)."""
        return self.logits(x).argmax(2) == y

    def mean(self) -> Heads:
        """One layer, of the mean coefficients."""
        return Heads(self.weight.mean(0, keepdim=True), self.bias.mean(0, keepdim=True))

    @torch.no_grad()
    def give(self, model: nn.Module, number: int = 0) -> None:
        """Make one of them the last layer of ``model``."""
        head = head_of(model)
        head.weight.copy_(self.weight[number])
        head.bias.copy_(self.bias[number])


class Scale(NamedTuple):
    """Means and deviations by which features are standardised; a constant feature stays as it is."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Scale:
        deviation = x.double().std(0, correction=0)
        return cls(x.double().mean(0), torch.where(deviation > 0, deviation, 1.0))

    def apply(self, x: Tensor) -> Tensor:
        return (x.double() - self.mean) / self.deviation

    def undo(self, heads: Heads) -> Heads:
        """Heads that give the same answers from features that are not standardised."""
        weight = heads.weight / self.deviation
        return Heads(weight, heads.bias - weight @ self.mean)


@torch.no_grad()
def fit_heads(x: Tensor, y: Tensor, share: Tensor, start: Heads, penalty: Penalty, steps: int) -> Heads:
    """Minimise the sum of ``share`` times cross-entropy plus ``penalty``, for as many fits as ``start`` has.

    Accelerated proximal gradient descent (FISTA) with a step of one over the curvature's bound, restarted whenever it
    overshoots. ``share`` (fits, samples) or (samples,) sums to 1. Ends after ``steps`` at the latest. For two classes,
    two rows with an L1 penalty on both have the same minimum as one row for the difference.
    """
    x, share = x.double(), share.double().expand(len(start.weight), len(x))
    known = torch.cat([x, x.new_ones(len(x), 1)], 1)
    first = torch.cat([start.weight, start.bias[..., None]], 2).double()
    l1, l2 = (torch.as_tensor(value, dtype=x.dtype, device=x.device).reshape(-1, 1, 1) for value in penalty)
    target = functional.one_hot(y, first.shape[1]).to(x)
    step = 1 / (_curvature(known, share) + 2 * l2)
    threshold = (step * l1).expand(first.shape).clone()
    threshold[..., -1] = 0  # biases are free
    now, ahead, pace = first, first, x.new_ones(len(first), 1, 1)
    for _ in range(steps):
        wrong = ((known @ ahead.mT).softmax(2) - target) * share[..., None]
        slope = wrong.mT @ known + 2 * l2 * (ahead - first)
        moved = ahead - step * slope
        after = moved.sign() * (moved.abs() - threshold).clamp(min=0)
        over = ((ahead - after) * (after - now)).sum((1, 2), keepdim=True) > 0
        faster = torch.where(over, 1.0, (1 + (1 + 4 * pace.square()).sqrt()) / 2)
        ahead = after + torch.where(over, 0.0, (pace - 1) / faster) * (after - now)
        still = bool((after - now).abs().amax() < ENOUGH)
        now, pace = after, faster
        if still:
            break
    return Heads(now[..., :-1], now[..., -1])


def _curvature(known: Tensor, share: Tensor) -> Tensor:
    """A bound of the second derivative for each fit: half the largest eigenvalue of the weighted second moments."""
    largest = []
    for own in share:  # one at a time: all of them would be as many copies of the features
        rows = known * own.sqrt()[:, None]
        gram = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
        largest.append(torch.linalg.eigvalsh(gram)[-1])
    return torch.stack(largest)[:, None, None] / 2


def require_bias(head: nn.Linear) -> None:
    """Raise an error for a last layer without a bias, which could not hold what is fitted."""
    require(head.bias is not None, "The last layer has no bias, which a fitted one needs; use a network that has one.")


def zero_heads(fits: int, classes: int, x: Tensor) -> Heads:
    """The start of a fit that has no start of its own: zeros."""
    return Heads(x.new_zeros(fits, classes, x.shape[1]).double(), x.new_zeros(fits, classes).double())
