"""How two series of figures go together."""

from __future__ import annotations

import math
from collections.abc import Sequence


def correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Pearson's correlation; None for fewer than two pairs or where either series is constant.

    >>> correlation([1, 2, 3], [2, 4, 5.9]) > 0.99
    True
    """
    if len(a) != len(b):
        raise ValueError(f"The series have {len(a)} and {len(b)} values.")
    if len(a) < 2:
        return None
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    product = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    size = math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))
    return product / size if size else None


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's correlation: that of the ranks, equal values sharing their mean rank.

    >>> rank_correlation([0.001, 0.01, 0.1], [10, 70, 71])
    1.0
    """
    found = correlation(_ranks(a), _ranks(b))
    return None if found is None else max(-1.0, min(1.0, found))  # rounding may pass 1


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
