"""Integrated Gradients and DeepLift through captum, in bounded batches (large-LR 3.3 and E.1).

Both explain the difference between a class's logit for the input and for a black input (zeros). They spread it over the
input's values, so they have the input's shape. They add up to that difference: exactly for DeepLift, nearly for
Integrated Gradients.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from unspur.errors import UnspurError
from unspur.models.base import evaluating, penultimate

AttributionKind = Literal["integrated_gradients", "deeplift"]

_RELUS = (functional.relu, functional.relu_, torch.relu, torch.relu_, "relu", "relu_")
_TOLERANCE = 0.05  # the share of the difference that DeepLift may miss before it is an error


def integrated_gradients(
    model: nn.Module, x: Tensor, *, target: Tensor | None = None, steps: int = 32, batch_size: int = 256
) -> Tensor:
    """Integrated Gradients of the logit of class ``target`` (None: of the class predicted), from black to ``x``.

    ``batch_size`` bounds the number of points on the paths that pass through the model at once.
    """
    with evaluating(model):
        return _integrated(model, x, _target(model, x, target, batch_size), steps, batch_size)


def neuron_attribution(model: nn.Module, x: Tensor, neuron: int, *, steps: int = 32, batch_size: int = 256) -> Tensor:
    """Integrated Gradients of one penultimate neuron's activation: what in the input it fires for.

    Its share on the spurious part (``metrics.attribution``) is the neuron's spurious use (large-LR, Figure 28).
    """
    with evaluating(model):
        with torch.no_grad():
            count = penultimate(model, x[:1]).shape[1]
        if not 0 <= neuron < count:
            raise UnspurError(f"The model has penultimate neurons 0 to {count - 1}, but got {neuron}.")
        return _integrated(lambda part: penultimate(model, part)[:, neuron], x, None, steps, batch_size)


def deeplift(model: nn.Module, x: Tensor, *, target: Tensor | None = None, batch_size: int = 256) -> Tensor:
    """DeepLift (rescale rule) of the logit of class ``target`` (None: of the class predicted), against black.

    captum's DeepLift needs a separate module for each use of a ReLU, which residual networks do not have. So it works
    on a traced copy of the model that has them. It knows no rule for some activations, such as GELU: it is an error if
    the attributions do not add up to the difference that they explain.
    """
    from captum.attr import DeepLift

    with evaluating(model):
        target = _target(model, x, target, batch_size)
        lift, parts = DeepLift(_unshared(model)), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # captum warns that it sets hooks
            for part, wanted in zip(x.split(batch_size), target.split(batch_size), strict=True):
                parts.append(lift.attribute(part.detach().clone().requires_grad_(), target=wanted).detach())
        found = torch.cat(parts)
        _check_sum(model, x, target, found, batch_size)
    return found


def attributions(
    kind: AttributionKind, model: nn.Module, x: Tensor, *, target: Tensor | None = None, batch_size: int = 256
) -> Tensor:
    """Attributions of either kind."""
    if kind == "deeplift":
        return deeplift(model, x, target=target, batch_size=batch_size)
    return integrated_gradients(model, x, target=target, batch_size=batch_size)


def _integrated(
    function: Callable[[Tensor], Tensor], x: Tensor, target: Tensor | None, steps: int, batch_size: int
) -> Tensor:
    from captum.attr import IntegratedGradients

    explain, parts = IntegratedGradients(function, multiply_by_inputs=True), []
    # captum needs room for one point of each input in a batch, and fills it with points of all of them.
    for begin in range(0, len(x), batch_size):
        part = x[begin : begin + batch_size].detach()
        wanted = None if target is None else target[begin : begin + batch_size]
        found = explain.attribute(part, target=wanted, n_steps=steps, internal_batch_size=batch_size)
        parts.append(found.detach().to(x.dtype))
    return torch.cat(parts)


def _target(model: nn.Module, x: Tensor, target: Tensor | None, batch_size: int) -> Tensor:
    if target is not None:
        return target
    with torch.no_grad():
        return torch.cat([model(part).argmax(1) for part in x.split(batch_size)])


def _check_sum(model: nn.Module, x: Tensor, target: Tensor, found: Tensor, batch_size: int) -> None:
    with torch.no_grad():
        logits = torch.cat([model(part) for part in x.split(batch_size)])
        black = model(torch.zeros_like(x[:1]))
    difference = (logits - black).gather(1, target.unsqueeze(1)).squeeze(1)
    missing = float((found.flatten(1).sum(1) - difference).abs().mean())
    if missing > _TOLERANCE * float(difference.abs().mean()) + 1e-6:
        raise UnspurError(
            "DeepLift has no rule for some layer of this network: its attributions do not add up. "
            "Use integrated gradients."
        )


def _unshared(model: nn.Module) -> nn.Module:
    """A copy in which each use of a ReLU, and of any module that is used twice, is a separate module."""
    try:
        traced = fx.symbolic_trace(copy.deepcopy(model))
    except Exception as error:  # a network's own code may raise anything when it is traced
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnspurError(f"DeepLift cannot follow this network ({reason}); use integrated gradients.") from None
    seen: set[object] = set()
    for node in list(traced.graph.nodes):
        own: nn.Module | None = None
        if node.op == "call_module":
            module = traced.get_submodule(node.target)
            own = nn.ReLU() if isinstance(module, nn.ReLU) else copy.deepcopy(module) if node.target in seen else None
            seen.add(node.target)
        elif node.op in ("call_function", "call_method") and node.target in _RELUS:
            own = nn.ReLU()
        if own is not None:
            traced.add_submodule(name := f"own_{node.name}", own)
            with traced.graph.inserting_before(node):
                node.replace_all_uses_with(traced.graph.call_module(name, node.args[:1]))
            traced.graph.erase_node(node)
    traced.recompile()
    return traced.eval()
