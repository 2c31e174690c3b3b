"""Supervised contrastive losses between samples that follow the shortcut and samples that do not (DCWP, Eq. 15, 16)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from unspur.data.base import Batch


def alignment(features: Tensor, batch: Batch, mined: Tensor, temperature: float) -> Tensor:
    """The debiased alignment loss (Eq. 16) of a batch in which the samples at ``mined`` are bias-conflicting.

    con(mined, all) draws mined samples to all others of their class; con(others, mined) draws the others to mined ones
    of their class, and apart from each other.
    """
    pairs = _Pairs(features, batch, temperature)
    return pairs.contrast(mined, torch.ones_like(mined)) + pairs.contrast(~mined, mined)


def contrast(features: Tensor, batch: Batch, anchors: Tensor, partners: Tensor, temperature: float) -> Tensor:
    """The supervised contrastive loss (Eq. 15) with V = ``anchors`` and V+ = ``partners``, both True where a member is.

    The sum over anchors is divided by the number of those that have a partner of their class and another anchor to be
    told from; the others are left out, and with no such anchor the loss is 0. A batch drawn with replacement may hold a
    sample twice: its copies are one sample, and no pair.
    """
    return _Pairs(features, batch, temperature).contrast(anchors, partners)


class _Pairs:
    def __init__(self, features: Tensor, batch: Batch, temperature: float) -> None:
        z = functional.normalize(features.flatten(1), dim=1)
        self.likeness = z @ z.T / temperature
        self.distinct = batch.index.unsqueeze(1) != batch.index
        self.same_class = batch.y.unsqueeze(1) == batch.y

    def contrast(self, anchors: Tensor, partners: Tensor) -> Tensor:
        positive = self.distinct & self.same_class & partners
        other = self.distinct & anchors  # Eq. 15's denominator runs over V, not V+
        rows = anchors & positive.any(1) & other.any(1)
        likeness, positive, other = self.likeness[rows], positive[rows], other[rows]
        # -mean_j log(exp(s_ij) / sum_a exp(s_ia)) = log sum_a exp(s_ia) - mean_j s_ij
        spread = likeness.masked_fill(~other, -torch.inf).logsumexp(1)
        near = (likeness * positive).sum(1) / positive.sum(1)
        return (spread - near).sum() / rows.sum().clamp(min=1)
