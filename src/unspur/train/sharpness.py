"""Adaptive sharpness-aware minimisation (arXiv:2102.11600): take the gradient where the loss is worst nearby."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

ETA = 0.01  # keeps weights of 0 movable, as in that paper


@contextlib.contextmanager
def ascended(model: nn.Module, rho: float) -> Iterator[None]:
    """Move the weights w to w + rho T^2 g / |T g| for the block, g being their gradients and T = |w| + ETA.

    T is 1 for biases, as in the authors' code. Batch norm's statistics do not change in the block: they belong to the
    unmoved weights, which are the ones that are kept.
    """
    before = _ascend(model, rho)
    try:
        with _statistics_kept(model):
            yield
    finally:
        with torch.no_grad():
            for parameter, value in before:
                parameter.copy_(value)


@torch.no_grad()
def _ascend(model: nn.Module, rho: float) -> list[tuple[nn.Parameter, Tensor]]:
    """Move the weights; return each with its value before."""
    sizes = [
        (parameter, parameter.grad, torch.ones_like(parameter) if name.endswith("bias") else parameter.abs() + ETA)
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    ]
    before = [(parameter, parameter.clone()) for parameter, _, _ in sizes]
    norm = torch.stack([(size * gradient).norm() for _, gradient, size in sizes]).norm() + 1e-16
    for parameter, gradient, size in sizes:
        parameter.add_(size.square() * gradient * (rho / norm))
    return before


@contextlib.contextmanager
def _statistics_kept(model: nn.Module) -> Iterator[None]:
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.track_running_stats]
    for module in norms:
        module.track_running_stats = False
    try:
        yield
    finally:
        for module in norms:
            module.track_running_stats = True
