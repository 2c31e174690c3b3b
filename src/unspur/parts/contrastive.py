"""Supervised contrastive losses between samples that follow the shortcut and samples that do not (DCWP, Eq. 15, 16)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from unspur.data.base import Batch


def alignment(features: Tensor, batch: Batch, mined: Tensor, temperature: float) -> Tensor:
    """The debiased alignment loss (Eq. 16) of a batch in which the samples at ``mined`` are bias-conflicting.

    con(mined, all) draws mined samples to all other samples of their class; con(others, mined) draws the others to the
    mined samples of their class, and away from each other.
    """
    pairs, likeness = _Pairs(batch.y, batch.index), _likeness(features, temperature)
    near, apart = (pairs.contrast(likeness, *sides) for sides in _terms(mined))
    return near + apart


def has_pair(y: Tensor, index: Tensor, mined: Tensor) -> bool:
    """Whether a batch of these labels and sample numbers has anything to align; if not, its loss is 0."""
    pairs = _Pairs(y, index)
    return any(bool(pairs.of(*sides).rows.any()) for sides in _terms(mined))


def contrast(features: Tensor, batch: Batch, anchors: Tensor, partners: Tensor, temperature: float) -> Tensor:
    """The supervised contrastive loss (Eq. 15) with V = ``anchors`` and V+ = ``partners``, both True where a member is.

    Only anchors that have a partner of their class and another anchor to be told from count; the sum is divided by
    their number. Without any such anchor the loss is 0. A batch drawn with replacement may hold a sample twice: its
    copies are not compared with each other.
    """
    return _Pairs(batch.y, batch.index).contrast(_likeness(features, temperature), anchors, partners)


def _terms(mined: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Anchors and partners of both terms of Eq. 16."""
    return (mined, torch.ones_like(mined)), (~mined, mined)


def _likeness(features: Tensor, temperature: float) -> Tensor:
    z = functional.normalize(features.flatten(1), dim=1)
    return z @ z.T / temperature


class _Compared(NamedTuple):
    rows: Tensor  # anchors that have all they need
    positive: Tensor
    other: Tensor


class _Pairs:
    def __init__(self, y: Tensor, index: Tensor) -> None:
        self.distinct = index.unsqueeze(1) != index
        self.same_class = y.unsqueeze(1) == y

    def of(self, anchors: Tensor, partners: Tensor) -> _Compared:
        positive = self.distinct & self.same_class & partners
        other = self.distinct & anchors  # Eq. 15's denominator runs over V, not V+
        return _Compared(anchors & positive.any(1) & other.any(1), positive, other)

    def contrast(self, likeness: Tensor, anchors: Tensor, partners: Tensor) -> Tensor:
        rows, positive, other = self.of(anchors, partners)
        likeness, positive, other = likeness[rows], positive[rows], other[rows]
        # -mean_j log(exp(s_ij) / sum_a exp(s_ia)) = log sum_a exp(s_ia) - mean_j s_ij
        spread = likeness.masked_fill(~other, -torch.inf).logsumexp(1)
        near = (likeness * positive).sum(1) / positive.sum(1)
        return (spread - near).sum() / rows.sum().clamp(min=1)
