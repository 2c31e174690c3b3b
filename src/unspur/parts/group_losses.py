"""Losses by group: their means, group weights that grow with them, and warnings about groups that are too small."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from unspur.data.base import Batch, Split, groups_of
from unspur.train.losses import cross_entropy
from unspur.train.moments import Carry, Minimised, Moment

NAMED = 3  # groups that a sentence names; it counts the rest


def group_means(values: Tensor, group: Tensor, count: int) -> Tensor:
    """The mean of ``values`` over each of ``count`` groups; NaN where the batch has no sample of one.

    >>> group_means(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 2]), 3)
    tensor([2., nan, 5.])
    """
    sums = values.new_zeros(count).index_add(0, group, values)
    return sums / torch.bincount(group, minlength=count)


class GroupWeights(Carry):
    """The weights q of GroupDRO's Algorithm 1, and the loss that they give (arXiv:1911.08731)."""

    saved: ClassVar[tuple[str, ...]] = ("q",)

    def __init__(self, group: Tensor, eta: float, adjustment: float, device: torch.device) -> None:
        """``group`` has the number of each training sample's group."""
        self.group = group.to(device)
        self.size = torch.bincount(self.group)
        self.eta, self.margin = eta, adjustment / self.size.sqrt()
        self.q = torch.full(self.size.shape, 1 / len(self.size), device=device)

    def raised(self, risks: Tensor, present: Tensor) -> Tensor:
        """q exp(eta (risk + C / sqrt(n))), scaled to sum to 1; a group that is not ``present`` only gets scaled."""
        grown = self.q.to(risks.device) * torch.where(present, self.eta * (risks.detach() + self.margin), 0.0).exp()
        return grown / grown.sum()

    def risks(self, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Each group's mean loss in a batch, and which groups are in it."""
        group = self.group[batch.index]
        means = group_means(cross_entropy(logits.float(), batch), group, len(self.size))
        return means, torch.bincount(group, minlength=len(self.size)) > 0

    def loss(self, model: nn.Module, batch: Batch, step: int) -> Minimised:
        """The sum of q times risk, with q already raised by this batch's losses, as in the algorithm."""
        logits = model(batch.x)
        risks, present = self.risks(logits, batch)
        return Minimised((self.raised(risks, present) * torch.where(present, risks, 0.0)).sum(), logits)

    def see(self, moment: Moment) -> None:
        self.q = self.raised(*self.risks(moment.logits, moment.batch))


def lone_sample_warnings(train: Split) -> list[str]:
    """A sentence if groups have a single sample: drawn as often as whole groups, it is memorised.

    >>> lone = Split(torch.zeros(3, 1), torch.tensor([0, 0, 1]), {"square": torch.tensor([0, 0, 1])})
    >>> lone_sample_warnings(lone)[0].partition(";")[0]
    'Of the group y=1, square=1 there is one training sample'
    """
    groups = groups_of(train)
    lone = [groups.keys[number] for number in (torch.bincount(groups.id) == 1).nonzero().squeeze(1).tolist()]
    if not lone:
        return []
    names = ("y", *train.attributes)
    said = [", ".join(f"{name}={value}" for name, value in zip(names, key, strict=True)) for key in lone[:NAMED]]
    more = f" and {len(lone) - NAMED} more" if len(lone) > NAMED else ""
    which = "the group" if len(lone) == 1 else "each of the groups"
    return [f"Of {which} {'; '.join(said)}{more} there is one training sample; it is learnt by heart."]
