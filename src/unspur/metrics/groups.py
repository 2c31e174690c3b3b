"""Accuracy by group, with intervals: pure functions of predictions, labels and group numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

Z95 = 1.959963984540054  # the normal distribution's 97.5 % point


def wilson_interval(correct: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for a proportion: sensible near 0 and 1, and for small groups.

    (p + z^2/2n ± z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n) with p = correct / n.

    >>> [round(bound, 4) for bound in wilson_interval(9, 10)]
    [0.5958, 0.9821]
    """
    p = correct / n
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def group_accuracy(pred: Tensor, y: Tensor, group: Tensor) -> dict[int, float]:
    """Accuracy of each group present in ``group``.

    >>> from torch import tensor
    >>> group_accuracy(tensor([0, 1, 1]), tensor([0, 0, 1]), tensor([0, 0, 3]))
    {0: 0.5, 3: 1.0}
    """
    correct = pred == y
    return {int(g): float(correct[group == g].double().mean()) for g in group.unique()}


def mean_group_accuracy(accuracy: Mapping[int, float]) -> float:
    """The mean over groups, each counting the same (ULE, Eq. 4).

    >>> mean_group_accuracy({0: 0.5, 3: 1.0})
    0.75
    """
    return sum(accuracy.values()) / len(accuracy)


def worst_group_accuracy(accuracy: Mapping[int, float]) -> float:
    """The lowest over groups (ULE, Eq. 5).

    >>> worst_group_accuracy({0: 0.5, 3: 1.0})
    0.5
    """
    return min(accuracy.values())


def weighted_group_accuracy(accuracy: Mapping[int, float], weight: Mapping[int, float]) -> float | None:
    """The mean over groups with given weights, renormalised over the groups present; None if they weigh nothing.

    >>> weighted_group_accuracy({0: 0.5, 3: 1.0}, {0: 1, 1: 8, 3: 3})
    0.875
    >>> weighted_group_accuracy({0: 0.5}, {1: 8}) is None
    True
    """
    total = sum(weight.get(g, 0.0) for g in accuracy)
    return sum(weight.get(g, 0.0) * a for g, a in accuracy.items()) / total if total else None
