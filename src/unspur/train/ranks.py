"""What the processes of a run on several devices must agree on."""

from __future__ import annotations

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn


def summed(fabric: Fabric, value: Tensor) -> Tensor:
    """The sum of ``value`` over all ranks."""
    if fabric.world_size == 1:
        return value
    total = fabric.all_reduce(value, reduce_op="sum")
    assert isinstance(total, Tensor)
    return total


def finite(fabric: Fabric, value: Tensor) -> bool:
    """Whether ``value`` is finite on all ranks."""
    # All ranks must agree to stop; otherwise the others would wait for this one for ever.
    return bool(torch.isfinite(summed(fabric, value.detach())))


def equalise_buffers(fabric: Fabric, model: nn.Module) -> None:
    """Give every rank rank 0's buffers: DDP keeps weights equal, but each rank's batch statistics are its own."""
    if fabric.world_size > 1:
        for buffer in model.buffers():
            buffer.copy_(fabric.broadcast(buffer))
