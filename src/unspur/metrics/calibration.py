"""Probabilities that mean what they say: a temperature (Guo et al., 2017), and how far off they are."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from unspur.errors import require

BINS = 15  # of Guo et al.
LOWEST, HIGHEST = 0.05, 20.0  # of temperatures: beyond these the validation set has nothing to fit


def temperature_for(logits: Tensor, y: Tensor, steps: int = 60) -> float:
    """The temperature T at which softmax(logits / T) gives labels ``y`` the highest likelihood.

    The loss is convex in 1 / T, so that a golden-section search finds it. A set without errors has no best T, the
    sharper the likelier, and leaves the logits as they are: 1.

    >>> logits = torch.tensor([[2.0, 0.0]] * 4)
    >>> round(temperature_for(logits, torch.tensor([0, 0, 0, 1])), 3)  # 3 of 4 right: 2 / T = log 3
    1.82
    """
    require(len(y) > 0, "A temperature is fitted to labelled samples, but there are none.")
    logits = logits.double()
    if bool((logits.argmax(1) == y).all()):
        return 1.0

    def loss(sharpness: float) -> float:
        return float(functional.cross_entropy(logits * sharpness, y))

    low, high, ratio = 1 / HIGHEST, 1 / LOWEST, (5**0.5 - 1) / 2
    for _ in range(steps):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    return 2 / (low + high)


def calibration_error(probability: Tensor, correct: Tensor, bins: int = BINS) -> float:
    """The expected calibration error: the mean gap between confidence and accuracy over bins of equal width.

    ECE = sum_b (n_b / n) |accuracy_b - confidence_b|.

    >>> round(calibration_error(torch.tensor([0.9, 0.9, 0.6]), torch.tensor([True, False, True])), 4)
    0.4
    """
    require(len(probability) > 0, "A calibration error is a mean over samples, but there are none.")
    place = (probability * bins).long().clamp(0, bins - 1)
    gap = torch.zeros(bins, dtype=torch.double).index_add_(0, place, correct.double() - probability.double())
    return float(gap.abs().sum() / len(probability))
