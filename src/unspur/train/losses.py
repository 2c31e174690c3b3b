"""Losses, one value a sample: the loop takes their mean."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from unspur.data.base import Batch

Loss = Callable[[Tensor, Batch], Tensor]  # of logits, one value a sample


def cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy of each sample."""
    return functional.cross_entropy(logits, batch.y, reduction="none")


def generalised_cross_entropy(q: float) -> Loss:
    """(1 - p^q) / q, where p is the probability of the label (DCWP, Eq. 13).

    With q = 1 it is 1 - p; as q falls to 0 it becomes cross-entropy. Its gradient is that of cross-entropy times p^q:
    samples that the model cannot explain easily hardly count.
    """

    def loss(logits: Tensor, batch: Batch) -> Tensor:
        return (1 - (-q * cross_entropy(logits, batch)).exp()) / q

    return loss


def confident_cross_entropy(threshold: float) -> Loss:
    """Cross-entropy of the samples whose label has a probability above ``threshold``, 0 for the others."""

    def loss(logits: Tensor, batch: Batch) -> Tensor:
        losses = cross_entropy(logits, batch)
        return losses * ((-losses.detach()).exp() > threshold)

    return loss


def focal(gamma: float) -> Loss:
    """(1 - p)^gamma times cross-entropy, where p is the probability of the label (arXiv:1708.02002, Eq. 4).

    With gamma = 0 it is cross-entropy. Samples that the model explains well hardly count.
    """

    def loss(logits: Tensor, batch: Batch) -> Tensor:
        losses = cross_entropy(logits, batch)
        # Not below 1e-12: the derivative of 0^gamma is infinite for gamma below 1.
        return (-torch.expm1(-losses.clamp(min=1e-12))) ** gamma * losses

    return loss
