"""Mixtures of two samples: which, how, and the loss of what comes out."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.data.base import Batch
from unspur.train.moments import Minimised


class Mixture(NamedTuple):
    """Mixed inputs, and the share of each that comes from the first sample; the rest comes from its partner."""

    x: Tensor
    share: Tensor


def beta(alpha: float) -> Tensor:
    """A number from Beta(alpha, alpha), by torch's own generator."""
    drawn: Tensor = torch.distributions.Beta(alpha, alpha).sample()
    return drawn


def blended(x: Tensor, partner: Tensor, share: Tensor) -> Mixture:
    """The weighted mean of both samples everywhere (arXiv:1710.09412, Eq. 1)."""
    return Mixture(x.lerp(x[partner], float(1 - share)), share)


def pasted(x: Tensor, partner: Tensor, share: Tensor) -> Mixture:
    """A box of the partner in the first image, of 1 - share of its area (arXiv:1905.04899, Eq. 1 and 2).

    The box is centred at a random place. What sticks out of the image is cut off, and the share counts the pixels left.
    """
    height, width = x.shape[2:]
    side = float(1 - share) ** 0.5
    spans = []
    for length in (height, width):
        centre, half = int(torch.randint(length, ())), round(side * length) // 2
        spans.append((max(0, centre - half), min(length, centre + half)))
    (top, bottom), (left, right) = spans
    mixture = x.clone()
    mixture[:, :, top:bottom, left:right] = x[partner][:, :, top:bottom, left:right]
    return Mixture(mixture, 1 - torch.tensor((bottom - top) * (right - left) / (height * width)))


def partners(same: Tensor, other: Tensor) -> Tensor:
    """For each sample the place of a random one with equal ``same`` but different ``other``; its own if there is none.

    >>> partners(torch.tensor([0, 0, 1]), torch.tensor([5, 6, 6])).tolist()
    [1, 0, 2]
    """
    allowed = (same[:, None] == same) & (other[:, None] != other)
    drawn = torch.rand(allowed.shape).to(same.device).masked_fill(~allowed, -1.0)
    found = drawn.argmax(1)
    return torch.where(allowed.any(1), found, torch.arange(len(same), device=same.device))


def mixed(model: nn.Module, batch: Batch, partner: Tensor, mixture: Mixture) -> Minimised:
    """Each mixture's cross-entropy with both labels, weighted by their shares."""
    logits, share = model(mixture.x), mixture.share.to(batch.y.device)
    first, second = (functional.cross_entropy(logits.float(), y, reduction="none") for y in (batch.y, batch.y[partner]))
    return Minimised(share * first + (1 - share) * second, logits)
