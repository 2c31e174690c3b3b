"""A network with another last layer: for attributes instead of classes, or for several answers."""

from __future__ import annotations

import copy

from torch import nn

from unspur.core.seeds import seeded
from unspur.models.base import head_of


def with_new_head(model: nn.Module, outputs: int, seed: int) -> nn.Module:
    """A copy of ``model`` whose last linear layer is new and has ``outputs``.

    >>> [layer.out_features for layer in with_new_head(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4)), 5, seed=0)]
    [3, 5]
    """
    made = copy.deepcopy(model)
    old = head_of(made)
    with seeded(seed, "head"):
        new = nn.Linear(old.in_features, outputs, bias=old.bias is not None).to(old.weight.device)
    if old is made:
        return new
    for parent in made.modules():
        for name, child in parent.named_children():
            if child is old:
                setattr(parent, name, new)
    return made
