"""The means and variances that batch normalisation uses when it does not train."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from unspur.models.base import batch_norms, evaluating
from unspur.train.orders import Order, Place

BATCHES = 50  # at most, and no more than a pass over the samples has


@torch.no_grad()
def settle_batch_norm(model: nn.Module, place: Place, order: Order, batches: int = BATCHES) -> bool:
    """Measure the means and variances of ``model``'s batch norm again, on training batches; return whether it has any.

    Training leaves running means over weights that were still changing. After few steps they are mostly their initial
    values: at EfficientNet's momentum of 0.01, two thirds of those remain after 40 steps. Here each statistic is the
    mean over up to ``batches`` batches, computed with the current weights. ``order`` draws the batches from the stage's
    own masked and augmented images; they depend on the seed and the stage alone. Everything else is in evaluation mode,
    as it will be later.

    Frozen layers keep their statistics, and so do layers that a pass does not reach. A model that holds several
    networks but calls only one of them lists all of them as ``networks``.
    """
    session, batches = place.session, min(batches, math.ceil(len(place.split) / place.batch_size))
    model.to(session.device)
    with evaluating(model):
        model.train()
        layers = [layer for layer in batch_norms(model) if layer.training and layer.running_mean is not None]
        if not layers:
            return False
        model.eval()
        place = place._replace(stage=f"{place.stage}: batch norm")
        with _measuring(layers), contextlib.closing(order.batches(place, 0, 0, batches)) as drawn:
            for number, (batch, _) in enumerate(itertools.islice(drawn, batches), 1):
                for network in getattr(model, "networks", (model,)):
                    network(batch.x)
                session.progress(place.stage, number / batches)
    session.progress(place.stage, 1.0)
    if session.fabric.world_size > 1:  # each rank has measured its own part of every batch
        for layer in layers:
            for buffer in (layer.running_mean, layer.running_var):
                buffer.copy_(session.fabric.all_reduce(buffer, reduce_op="mean"))  # type: ignore[union-attr,arg-type]
    return True


@contextlib.contextmanager
def _measuring(layers: list[nn.modules.batchnorm._BatchNorm]) -> Iterator[None]:
    """In the block, each of ``layers`` keeps the plain mean over the samples of all batches that pass it."""
    seen = dict.fromkeys(layers, 0)

    def weigh(layer: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        if not seen[layer]:
            layer.reset_running_stats()
        seen[layer] += len(inputs[0])
        layer.momentum = len(inputs[0]) / seen[layer]  # a short last batch counts less than a whole one

    momenta = [layer.momentum for layer in layers]
    handles = [layer.register_forward_pre_hook(weigh) for layer in layers]
    for layer in layers:
        layer.train()
    try:
        yield
    finally:
        for layer, momentum, handle in zip(layers, momenta, handles, strict=True):
            layer.momentum = momentum
            handle.remove()
