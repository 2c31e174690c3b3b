"""Clusters in few dimensions: k-means, and how well its clusters are separated."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

STARTS = 4  # of which the best counts
STEPS = 100  # of one start, at most
SAMPLED = 2000  # points by which a silhouette is measured: it needs all distances between them


class Clusters(NamedTuple):
    """The cluster of each point, from 0, and the mean silhouette."""

    of: Tensor
    silhouette: float


def kmeans(x: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """The cluster of each of ``x`` (points, dimensions), from the start (of a few) with the smallest squared distances.

    >>> kmeans(torch.tensor([[0.0], [9.0], [9.1], [0.1]]), 2, torch.Generator().manual_seed(0)).sort().values.tolist()
    [0, 0, 1, 1]
    """
    best, lowest = torch.zeros(len(x), dtype=torch.long), float("inf")
    for _ in range(STARTS):
        centres = _spread(x, count, generator)
        for _ in range(STEPS):
            distance, own = torch.cdist(x, centres).min(1)
            member = functional.one_hot(own, count).to(x)
            moved = torch.where(member.sum(0)[:, None] > 0, member.T @ x / member.sum(0)[:, None], centres)
            if torch.equal(moved, centres):
                break
            centres = moved
        if (total := float(distance.square().sum())) < lowest:
            best, lowest = own, total
    return best


def _spread(x: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Initial centres, each drawn in proportion to its squared distance from those before it (k-means++)."""
    centres = x[torch.randint(len(x), (1,), generator=generator)]
    for _ in range(count - 1):
        distance = torch.cdist(x, centres).amin(1).square().double()
        chance = distance if distance.sum() > 0 else torch.ones_like(distance)
        centres = torch.cat([centres, x[torch.multinomial(chance, 1, generator=generator)]])
    return centres


def silhouette(x: Tensor, cluster: Tensor) -> float:
    """The mean over points of (b - a) / max(a, b); a point alone in its cluster counts as 0 (Rousseeuw, 1987).

    a is the mean distance to the others of its cluster, b the smallest mean distance to another cluster's.

    >>> round(silhouette(torch.tensor([[0.0], [1.0], [10.0]]), torch.tensor([0, 0, 1])), 4)  # 9 / 10, 8 / 9, 0; by 3
    0.5963
    """
    own: Tensor = cluster.unique(return_inverse=True)[1]
    member = functional.one_hot(own).double()
    size = member.sum(0)
    to_cluster = torch.cdist(x.double(), x.double()) @ member  # sums of distances
    alone = size[own] == 1
    inside = to_cluster.gather(1, own[:, None]).squeeze(1) / (size[own] - 1).clamp(min=1)
    outside = (to_cluster / size).masked_fill(member.bool(), float("inf")).amin(1)
    score = ((outside - inside) / torch.maximum(outside, inside)).nan_to_num(0.0)
    return float(score.masked_fill(alone, 0.0).mean())


def best_clusters(x: Tensor, most: int, generator: torch.Generator) -> Clusters:
    """Two to ``most`` clusters, the number with the highest silhouette; one if no silhouette is above 0.

    In double precision: distances between probabilities near 1 are lost in single.
    """
    x = x.double()
    some = torch.randperm(len(x), generator=generator)[:SAMPLED]
    found = Clusters(torch.zeros(len(x), dtype=torch.long), 0.0)
    for count in range(2, min(most, len(x.unique(dim=0)), len(x) - 1) + 1):
        own = kmeans(x, count, generator)
        if len(own[some].unique()) > 1 and (score := silhouette(x[some], own[some])) > found.silhouette:
            found = Clusters(own, score)
    return found
