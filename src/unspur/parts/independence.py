"""How far features of two networks depend on each other, and a network that sees only small patches (ReBias)."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from unspur.core.seeds import seeded
from unspur.models.classifier import Classifier, Normalize

LEAST = 4  # the fewest samples for which the estimate is defined
NARROWEST = 1e-6  # of the features' mean square: what single precision can tell apart, which a width must not be below
WIDTHS = (16, 32, 64, 128)  # channels of the layers


def gaussian_kernel(x: Tensor, radius: float | None) -> Tensor:
    """exp(-|a - b|^2 / (2 radius^2)) for all pairs; None: the median distance between two different samples."""
    norms = x.square().sum(1)
    apart = (norms[:, None] + norms - 2 * x @ x.T).clamp(min=0)
    if radius is None:
        other = ~torch.eye(len(x), dtype=torch.bool, device=x.device)
        least = (NARROWEST * norms.mean()).clamp(min=torch.finfo(x.dtype).tiny)
        width = torch.maximum(apart[other].median(), least).detach()
    else:
        width = x.new_tensor(radius**2)
    return (-apart / (2 * width)).exp()


def hsic(k: Tensor, l: Tensor) -> Tensor:  # noqa: E741 (the letters of the paper)
    """The unbiased estimate of the Hilbert-Schmidt independence criterion from two kernels (Song et al., 2012, Eq. 5).

    The diagonals of both kernels are set to zero; with them left in, the result would not estimate independence. (A
    well-known implementation subtracts them from every row, which comes to the same only where all of a kernel's
    diagonal is equal, as a Gaussian one's is.) The estimate may be negative.
    """
    n = len(k)
    k, l = (kernel - kernel.diagonal().diag() for kernel in (k, l))  # noqa: E741
    both = (k * l).sum()  # tr(k l)
    apart = k.sum() * l.sum() / ((n - 1) * (n - 2))
    shared = 2 / (n - 2) * (k.sum(0) * l.sum(0)).sum()
    return (both + apart - shared) / (n * (n - 3))


def dependence(a: Tensor, b: Tensor, radius: float | None) -> Tensor:
    """The criterion of two sets of features of the same samples; 0 where these are too few."""
    if len(a) < LEAST:
        return (a.sum() + b.sum()) * 0
    return hsic(gaussian_kernel(a, radius), gaussian_kernel(b, radius))


def patch_network(model: nn.Module, channels: int, classes: int, patch: int, seed: int) -> Classifier:
    """A network whose answer is a mean over patches of ``patch`` x ``patch`` pixels, which is all it sees of an image.

    It normalises its input as ``model`` does.
    """
    first = next((layer for layer in model.modules() if isinstance(layer, Normalize)), None)
    channels = channels if first is None else len(first.mean)
    layers: list[nn.Module] = []
    with seeded(seed, "patches"):
        for number, width in enumerate(WIDTHS):
            kernel = patch if number == 0 else 1
            layers += [nn.Conv2d(channels, width, kernel, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
    return Classifier("patches", copy.deepcopy(first) or nn.Identity(), net)
