"""The means and variances that batch normalisation uses when it does not train."""

from __future__ import annotations

import torch
from torch import nn

from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.train.orders import Draws
from unspur.train.session import Session


@torch.no_grad()
def settle_batch_norm(
    model: nn.Module, split: Split, order: Draws, batch_size: int, session: Session, batches: int = 50
) -> None:
    """Measure the means and variances of ``model``'s batch normalisation again, on training batches from ``split``.

    A network that has lost weights has other activations than those that the stored figures describe.
    """
    kinds = nn.modules.batchnorm._BatchNorm
    layers = [m for m in model.modules() if isinstance(m, kinds) and m.running_mean is not None]
    momenta = [layer.momentum for layer in layers]
    model.to(session.device).eval()
    for layer in layers:
        layer.train()
        layer.reset_running_stats()
        layer.momentum = None  # the plain mean over all batches
    for number in range(batches if layers else 0):
        index = order.sample(batch_size, stream(session.seed, "batch norm", number))
        moves = stream(session.seed, "batch norm", number, "augment")
        model(split.batch(index, session.device, moves).x)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    model.eval()
