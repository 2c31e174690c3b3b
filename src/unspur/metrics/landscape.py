"""What surrounds a solution: any measures of a model on a plane through its weights (large-LR, Figure 9)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unspur.core.progress import Done
from unspur.errors import require


class Landscape(NamedTuple):
    """Each measure's values at w + a d1 + b d2: row by a, column by b, both over ``axis``."""

    axis: tuple[float, ...]
    values: dict[str, list[list[float]]]


def landscape(
    model: nn.Module,
    measures: Mapping[str, Callable[[nn.Module], float]],
    *,
    radius: float = 1.0,
    points: int = 11,
    seed: int = 0,
    progress: Done | None = None,
) -> Landscape:
    """Every measure on a plane spanned by two random directions, filter-normalised (arXiv:1712.09913, section 4).

    A direction is Gaussian, and each of its filters or neurons is scaled to the norm of that of the model, so that
    a distance means the same for networks of any scale; biases and batch norm stay where they are. The paper does not
    say how its planes are drawn; this is the usual way. An odd number of points has the solution itself in the middle.

    >>> found = landscape(nn.Linear(2, 1), {"zero": lambda model: 0.0}, points=3)
    >>> found.axis, found.values["zero"][1]
    ((-1.0, 0.0, 1.0), [0.0, 0.0, 0.0])
    """
    require(
        points >= 1 and radius > 0, f"A landscape needs points and a radius above 0, but got {points} and {radius}."
    )
    generator = torch.Generator().manual_seed(seed)
    weights = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    first, second = ([_direction(weight, generator) for weight in weights] for _ in range(2))
    axis = torch.linspace(-radius, radius, points).tolist() if points > 1 else [0.0]
    moved = copy.deepcopy(model)
    targets = [parameter for parameter in moved.parameters() if parameter.ndim > 1]
    values: dict[str, list[list[float]]] = {name: [] for name in measures}
    for row, a in enumerate(axis):
        for name in measures:
            values[name].append([])
        for b in axis:
            with torch.no_grad():
                for target, weight, one, two in zip(targets, weights, first, second, strict=True):
                    target.copy_(weight + a * one + b * two)
            for name, measure in measures.items():
                values[name][-1].append(float(measure(moved)))
        if progress:
            progress((row + 1) / points)
    return Landscape(tuple(axis), values)


def _direction(weight: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.randn(weight.shape, generator=generator).to(weight)
    scale = weight.detach().flatten(1).norm(dim=1) / drawn.flatten(1).norm(dim=1).clamp_min(1e-12)
    direction: Tensor = drawn * scale.reshape(-1, *[1] * (weight.ndim - 1))
    return direction
