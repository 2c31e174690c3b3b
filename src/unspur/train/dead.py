"""A dead network: no input reaches its head any more, so that it gives one answer whatever it is shown, for ever."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.models.base import evaluating, with_features

ROUNDS = 2  # at whose ends it must be dead: momentum may carry weights on for a while, and back to life


@torch.no_grad()
def is_dead(model: nn.Module, split: Split, trained: Sequence[nn.Parameter], device: torch.device) -> bool:
    """Whether the last step gave the first weights no gradient, and all of ``split`` has the same features.

    Either alone is harmless: where every answer is certain and right the gradient is zero too, and a head that begins
    with zeros gives one answer at first. Only what passes the first test costs more than a look at one gradient.
    """
    first = trained[0].grad if trained else None
    if first is None or first.any():
        return False
    known: torch.Tensor | None = None
    try:
        with evaluating(model):
            for batch in split.batches(torch.arange(len(split)).split(250), device):
                features, _ = with_features(model, batch.x)
                known = features[:1] if known is None else known
                if not torch.equal(features, known.expand_as(features)):
                    return False
    except UnspurError:  # it has no head
        return False
    return len(split) > 1
