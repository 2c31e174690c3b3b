"""How sure a balanced accuracy is, and how small a leak could have been found."""

from __future__ import annotations

import torch
from torch import Tensor

from unspur.metrics.groups import Z95
from unspur.practice.audit.rules import SIGNIFICANT


def interval(balanced: float, y: Tensor) -> tuple[float, float]:
    """A normal interval for balanced accuracy, as if every class were predicted equally well."""
    sizes = _sizes(y)
    half = Z95 * float((balanced * (1 - balanced) / sizes).sum().sqrt()) / len(sizes)
    return max(0.0, balanced - half), min(1.0, balanced + half)


def tail(balanced: float, y: Tensor, tests: int) -> float:
    """The chance that guessing does as well in the best of ``tests`` tests (normal approximation, Bonferroni)."""
    chance, std = _guessing(y)
    z = torch.tensor((balanced - chance) / max(std, 1e-9), dtype=torch.double)
    return min(1.0, tests * float(torch.special.ndtr(-z)))


def detectable(y: Tensor, tests: int) -> float:
    """The least balanced accuracy that ``tests`` tests find significant in four of five tries.

    Chance + (z of the corrected level + z of the power) standard deviations of guessing.
    """
    chance, std = _guessing(y)
    level = torch.tensor([1 - SIGNIFICANT / tests, 0.8], dtype=torch.double)
    return min(1.0, chance + float(torch.special.ndtri(level).sum()) * std)


def _sizes(y: Tensor) -> Tensor:
    sizes = torch.bincount(y)
    return sizes[sizes > 0].double()


def _guessing(y: Tensor) -> tuple[float, float]:
    """The mean and deviation of the balanced accuracy of guessing."""
    sizes = _sizes(y)
    chance = 1 / len(sizes)
    return chance, float((chance * (1 - chance) / sizes).sum().sqrt()) / len(sizes)
