"""What penultimate activations say of classes and of biases ("Large Learning Rates ...", 3.3): pure functions.

Activations have the shape (samples, neurons), labels are 0 ... values - 1, and each of them must occur in the sample.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unspur.errors import require


def class_separation(z: Tensor, y: Tensor, classes: int) -> float | None:
    """Class separation R^2 = 1 - d_within / d_total with cosine distances (3.3, after Kornblith et al., 2021).

    d_within = mean over classes k of the mean of 1 - sim(z_m, z_n) over all pairs of samples of class k,
    d_total = mean over all pairs of classes (j, k), j = k included, of the same mean over samples of j and k.

    The definition is quadratic in samples. The mean similarity of two sets is the product of their mean unit vectors
    u_j . u_k, hence d_within = 1 - mean_k |u_k|^2 and d_total = 1 - |mean_k u_k|^2: linear, and equal.

    A vector of zeros has similarity 0 with every vector, itself included. None where all vectors point the same way
    (d_total below 1e-9): what is left of the ratio is rounding.

    >>> z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    >>> r2 = class_separation(z, torch.tensor([0, 0, 1, 1]), 2)  # u = (1, 0), (1/2, 1/2): 1 - (1 - 3/4) / (1 - 5/8)
    >>> round(r2, 6)
    0.333333
    """
    mean = _label_means(z, y, _checked(z, y, classes), _unit)
    within = 1 - float(mean.square().sum(1).mean())
    total = 1 - float(mean.mean(0).square().sum())
    return None if total < 1e-9 else 1 - within / total


def selectivity(z: Tensor, label: Tensor, values: int, eps: float = 1e-6) -> Tensor:
    """The selectivity index of each neuron with its coverage factor (3.3): class labels give the CSI, biases the BSI.

    rho_max (pi_max - pi_rest) / (pi_max + pi_rest + eps): pi_max is the largest of the neuron's mean activations over
    the samples of one label, pi_rest the mean of these means over the other labels, and rho_max the share of samples
    of the label of pi_max for which the neuron is active at all.

    The index is made for activations that are never negative. Those of other networks (Swin) count with their
    magnitudes, which keeps every index in [0, 1]; after a ReLU this changes nothing.

    >>> z = torch.tensor([[4.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    >>> selectivity(z, torch.tensor([0, 0, 1, 1]), 2)  # means 2 and 1, half of class 0 active: 1/2 (2 - 1) / (2 + 1)
    tensor([0.1667, 0.0000], dtype=torch.float64)
    """
    require(values >= 2, f"Selectivity compares a label with the others and needs at least 2, but got {values}.")
    count = _checked(z, label, values)
    mean = _label_means(z, label, count, torch.abs)
    top, preferred = mean.max(0)
    rest = (mean.sum(0) - top) / (values - 1)
    active = _label_means(z, label, count, _active).gather(0, preferred[None]).squeeze(0)
    return active * (top - rest) / (top + rest + eps)


def average_selectivity(z: Tensor, label: Tensor, values: int) -> float:
    """The mean selectivity index over all neurons, those that never fire (index 0) included (3.3).

    >>> z = torch.tensor([[4.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    >>> round(average_selectivity(z, torch.tensor([0, 0, 1, 1]), 2), 4)
    0.0833
    """
    return float(selectivity(z, label, values).mean())


def _checked(z: Tensor, label: Tensor, values: int) -> Tensor:
    """The number of samples of each label, none of them 0."""
    require(
        z.ndim == 2 and label.shape == z.shape[:1],
        "Activations must have the shape (samples, neurons), with one label a sample, "
        f"but got {tuple(z.shape)} and labels {tuple(label.shape)}.",
    )
    present = set(label.tolist())
    require(
        present <= set(range(values)),
        f"Labels must be from 0 to {values - 1}, but got {sorted(present - set(range(values)))}.",
    )
    absent = sorted(set(range(values)) - present)
    require(
        not absent,
        f"A class is absent from the sample: none of {len(label)} samples has label {', '.join(map(str, absent))}. "
        "Draw more samples.",
    )
    return torch.bincount(label, minlength=values)


def _label_means(z: Tensor, label: Tensor, count: Tensor, of: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean of ``of(z)`` over the samples of each label, in pieces that fit the processor's cache."""
    total = z.new_zeros(len(count), z.shape[1], dtype=torch.float64)
    for part, labels in zip(z.split(512), label.split(512), strict=True):
        total.index_add_(0, labels, of(part.double()))
    return total / count[:, None]


def _unit(z: Tensor) -> Tensor:
    norm = z.norm(dim=1, keepdim=True)
    return z / torch.where(norm == 0, torch.ones_like(norm), norm)


def _active(z: Tensor) -> Tensor:
    return (z != 0).double()
