"""A dead network: no input reaches its head any more, so it predicts the same for every input, for ever."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.models.base import evaluating, with_features

ROUNDS = 2  # rounds in a row that must end with a dead network: momentum may still bring the weights back to life


@torch.no_grad()
def is_dead(model: nn.Module, split: Split, trained: Sequence[nn.Parameter], device: torch.device) -> bool:
    """Whether the last step gave some weights no gradient at all, and all of ``split`` has the same features.

    Either alone is harmless: the gradient is also zero where every answer is certain and right, and a head that begins
    with zeros gives one answer at first. The features are computed only if a gradient is zero.
    """
    if all(weights.grad is None or bool(weights.grad.any()) for weights in trained):
        return False
    known: torch.Tensor | None = None
    try:
        with evaluating(model):
            for batch in split.batches(torch.arange(len(split)).split(250), device):
                features, _ = with_features(model, batch.x)
                known = features[:1] if known is None else known
                if not torch.equal(features, known.expand_as(features)):
                    return False
    except UnspurError:  # the model has no head
        return False
    return len(split) > 1
