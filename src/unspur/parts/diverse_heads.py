"""Several last layers that agree on labelled data and differ elsewhere (DivDis, arXiv:2202.03418)."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from unspur.core.seeds import seeded
from unspur.models.base import head_of, with_features

TINY = 1e-12  # a probability below which its logarithm is not taken


class ManyHeads(nn.Module):
    """A network with its own last layer and further ones that read the same features."""

    def __init__(self, network: nn.Module, count: int, seed: int) -> None:
        super().__init__()
        head = head_of(network)
        with seeded(seed, "heads"):
            made = [nn.Linear(head.in_features, head.out_features, head.bias is not None) for _ in range(count - 1)]
        self.others = nn.ModuleList(made)
        self.network = network  # the last, so that its head is found and not one of the others

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)
        return logits

    def logits(self, model: nn.Module, x: Tensor) -> Tensor:
        """(heads, samples, classes), from one pass of ``model``, which is this module or a wrapper around it."""
        features, first = with_features(model, x, head_of(self.network))
        return torch.stack([first.float(), *(other(features.float()) for other in self.others)])

    def give_head(self, number: int) -> None:
        """Make one of the heads the network's own."""
        if number:
            head_of(self.network).load_state_dict(self.others[number - 1].state_dict())


def mutual_information(a: Tensor, b: Tensor) -> Tensor:
    """The mutual information of two heads' answers, from their probabilities (samples, classes) (DivDis, Eq. 2).

    It is the divergence of the joint distribution over the samples from the product of its marginals.

    >>> sure = torch.eye(2)
    >>> round(float(mutual_information(sure, sure)), 4)  # log 2
    0.6931
    """
    joint = a.T @ b / len(a)
    apart = a.mean(0)[:, None] * b.mean(0)
    return (joint * (joint.clamp(min=TINY).log() - apart.clamp(min=TINY).log())).sum()


def shared_information(chance: Tensor) -> Tensor:
    """The mean mutual information over pairs of heads, from probabilities (heads, samples, classes)."""
    pairs = itertools.combinations(range(len(chance)), 2)
    return torch.stack([mutual_information(chance[i], chance[j]) for i, j in pairs]).mean()


def divergence(chance: Tensor, labels: Tensor) -> Tensor:
    """The mean over heads of the divergence of a head's mean answer from the share of each label (DivDis, Eq. 3)."""
    mean = chance.mean(1)
    return (mean * (mean.clamp(min=TINY).log() - labels.clamp(min=TINY).log())).sum(1).mean()


def disputed(chance: Tensor, count: int) -> Tensor:
    """The samples on which heads differ most, by the mean distance between two heads' probabilities."""
    pairs = itertools.combinations(range(len(chance)), 2)
    apart = torch.stack([(chance[i] - chance[j]).abs().sum(1) for i, j in pairs]).mean(0)
    return apart.topk(min(count, len(apart))).indices
