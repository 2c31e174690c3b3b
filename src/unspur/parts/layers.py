"""Look into a network at one of its layers, and freeze what comes before it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from unspur.errors import UnspurError
from unspur.models.base import evaluating, hooked


def layer_named(model: nn.Module, name: str) -> nn.Module:
    """The layer of ``model`` called ``name``; the error for an unknown name lists the layers that exist."""
    layers: dict[str, nn.Module] = {key: module for key, module in model.named_modules() if key}
    if name not in layers:
        raise UnspurError(f"There is no layer '{name}'; there are: {', '.join(layers)}.")
    return layers[name]


def from_input(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """The logits, and the input with respect to which they can be differentiated."""
    x = x.detach().requires_grad_()
    logits: Tensor = model(x)
    return logits, x


def from_layer(model: nn.Module, layer: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """The logits, and the output of ``layer`` to differentiate them by; no gradient flows further back than that."""
    kept: list[Tensor] = []

    def cut(module: nn.Module, inputs: object, output: object) -> Tensor:
        kept.append(_tensor(output).detach().requires_grad_())
        return kept[-1].clone()  # later layers may work in place, which a leaf does not allow

    return _watched(model, layer, cut, x, kept)


def with_output(model: nn.Module, layer: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """The logits, and the output of ``layer``, through which gradients flow."""
    kept: list[Tensor] = []

    def keep(module: nn.Module, inputs: object, output: object) -> Tensor:
        kept.append(_tensor(output))
        return kept[-1].clone()  # later layers may work in place and would overwrite this layer's output

    return _watched(model, layer, keep, x, kept)


def scaled_at(model: nn.Module, layer: nn.Module, x: Tensor, factor: Tensor) -> Tensor:
    """The logits with the last output of ``layer`` times ``factor``.

    A network may run the same layer several times, such as one activation for all of its blocks. The runs are counted
    first, by one sample in evaluation mode.
    """
    runs: list[object] = []
    with evaluating(model), torch.no_grad(), hooked([layer], lambda module, inputs, output: runs.append(None)):
        model(x[:1])

    def scale(module: nn.Module, inputs: object, output: Tensor) -> Tensor | None:
        runs.pop()
        return None if runs else output * factor

    with hooked([layer], scale):
        logits: Tensor = model(x)
    return logits


@contextlib.contextmanager
def frozen_up_to(model: nn.Module, layer: nn.Module, x: Tensor) -> Iterator[list[nn.Module]]:
    """Freeze, for the block, the weights of everything that runs up to and including ``layer``; ``x`` is an input.

    Yields the layers that have run by then; they must stay in evaluation mode. Parameters that belong to none of them,
    such as a transformer's class token, are frozen if the layer's output depends on them.
    """
    ran: list[nn.Module] = []
    outputs: list[Tensor] = []

    def note(module: nn.Module, inputs: object, output: object) -> None:
        if not outputs:
            ran.append(module)
        if module is layer:
            outputs.append(_tensor(output))

    with evaluating(model), torch.enable_grad(), hooked(model.modules(), note):
        model(x)
    if not outputs:
        raise UnspurError("The layer is never run, so there is nothing to see in it; name another.")
    training = [p for p in model.parameters() if p.requires_grad]
    depends: list[Tensor | None] = [None] * len(training)
    if outputs[0].requires_grad:
        depends = list(torch.autograd.grad(outputs[0].sum(), training, allow_unused=True))
    own = {p for module in ran for p in module.parameters()}
    frozen = [p for p, grad in zip(training, depends, strict=True) if p in own or grad is not None]
    for p in frozen:
        p.requires_grad_(False)
    try:
        yield ran
    finally:
        for p in frozen:
            p.requires_grad_(True)


def _watched(
    model: nn.Module, layer: nn.Module, hook: Callable[..., object], x: Tensor, kept: list[Tensor]
) -> tuple[Tensor, Tensor]:
    with hooked([layer], hook):
        logits: Tensor = model(x)
    if not kept:
        raise UnspurError("The layer is never run, so there is nothing to see in it; name another.")
    return logits, kept[-1]


def _tensor(output: object) -> Tensor:
    if not isinstance(output, Tensor):
        raise UnspurError(f"A layer to look at must give one tensor, but this one gives a {type(output).__name__}.")
    return output
