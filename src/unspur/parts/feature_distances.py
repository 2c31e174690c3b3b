"""How far the features of several groups of samples are apart, as the mean over pairs of groups.

A squared distance between means in an inner-product space needs only inner products. With M(i, j) the inner product of
the means of groups i and j, it is M(i, i) + M(j, j) - 2 M(i, j), and its mean over the pairs of E groups is
2 (E tr M - sum M) / (E (E - 1)): nothing is computed pair by pair, and no covariance (features x features) is formed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

WIDTHS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)  # of the kernels exp(-width |x - y|^2), which are added up

Distance = Callable[[Tensor, Tensor], Tensor]  # of features by group


def coral(features: Tensor, group: Tensor) -> Tensor:
    """Squared differences of means and of covariances (n - 1), each the mean over its entries (arXiv:1607.01719).

    The paper compares covariances alone, by their squared distance / (4 features^2); means were added later, by those
    who compare domains with it. Every group needs two samples.

    >>> x = torch.tensor([[0.0], [2.0], [1.0], [5.0]])
    >>> coral(x, torch.tensor([0, 0, 1, 1]))  # means 1 and 3, variances 2 and 8: 4 + 36
    tensor(40.)
    """
    features = features - features.mean(0).detach()  # differences of smaller numbers lose fewer digits
    member = functional.one_hot(group).to(features)  # (samples, groups)
    size, width = member.sum(0), features.shape[1]
    means = (member / size).T @ features
    centred = features - means[group]
    share = member / (size - 1)
    covariances = share.T @ (centred @ centred.T).square() @ share  # of two groups: tr(C C')
    return mean_distance(means @ means.T) / width + mean_distance(covariances) / width**2


def mmd(features: Tensor, group: Tensor) -> Tensor:
    """Maximum mean discrepancy with Gaussian kernels of seven widths: never negative, since x = y counts as well.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> round(float(mmd(x, torch.tensor([0, 1]))), 4)  # twice the sum of 1 - exp(-width)
    7.4764
    """
    centred = features - features.mean(0).detach()  # differences of smaller numbers lose fewer digits
    norms = centred.square().sum(1)
    apart = (norms[:, None] + norms - 2 * centred @ centred.T).clamp(min=0)
    apart = apart * (1 - torch.eye(len(apart), device=apart.device))
    kernel = torch.stack([(-width * apart).exp() for width in WIDTHS]).sum(0)
    member = functional.one_hot(group).to(features)
    share = member / member.sum(0)
    return mean_distance(share.T @ kernel @ share)


def mean_distance(products: Tensor) -> Tensor:
    """The mean squared distance over all pairs, from inner products (groups, groups)."""
    groups = len(products)
    return 2 * (groups * products.trace() - products.sum()) / (groups * (groups - 1))


def between_mixtures(distance: Distance, features: Tensor, domain: Tensor, count: int) -> Tensor:
    """The distance between two random sides, mixtures of all ``count`` domains; 0 where one of them is too small."""
    side = resplit(domain, count)
    return features.new_zeros(()) if side is None else distance(features, side)


def resplit(domain: Tensor, count: int) -> Tensor | None:
    """A random side, 0 or 1, for each sample; None where one side has fewer than two.

    Each domain has its own probability, drawn uniformly from 0 to 1, so any number of its samples is equally likely on
    either side: the two sides are mixtures of all domains, with different shares.
    """
    chance = torch.rand(count, device=domain.device)
    side = (torch.rand(len(domain), device=domain.device) < chance[domain]).long()
    return side if 2 <= int(side.sum()) <= len(side) - 2 else None
