"""The last layer trained on equally many samples of every group, averaged over draws: what DFR and DISPEL share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unspur.core.seeds import stream
from unspur.data.base import Split, groups_of
from unspur.errors import require
from unspur.parts.logistic import Heads, Penalty, Scale, fit_heads, zero_heads
from unspur.parts.select import choose, scores
from unspur.train.session import Session

STAGE = "heads"


class Plan(NamedTuple):
    """Which settings are tried, how often the best is fitted, and for how many steps."""

    strengths: Sequence[float]  # C: what the losses' sum is multiplied with, the L1 penalty being 1
    shares: Sequence[float]  # s: how much of a sample is the balanced one's
    fits: int
    steps: int


class Labelled(NamedTuple):
    """Features, labels and groups (numbers) of samples whose groups are known."""

    x: Tensor
    y: Tensor
    group: Tensor

    def at(self, index: Tensor) -> Labelled:
        return Labelled(*(column[index] for column in self))


class Others(NamedTuple):
    """Features and labels of samples that balanced ones are mixed with, besides those of known groups."""

    x: Tensor
    y: Tensor


class Found(NamedTuple):
    """The last layer, and how it was chosen."""

    heads: Heads
    figures: dict[str, Any]
    warnings: list[str]


def require_plan(plan: Plan) -> None:
    """Raise an error for settings with which nothing can be fitted."""
    for name, values in (("strengths", plan.strengths), ("shares", plan.shares)):
        require(len(values) > 0 and min(values) > 0, f"{name} must be numbers above 0 but got {list(values)}.")
    require(max(plan.shares) <= 1, f"shares must be at most 1 but got {list(plan.shares)}.")
    require(plan.fits >= 1 and plan.steps >= 1, f"fits and steps must be at least 1 but got {plan.fits}, {plan.steps}.")


def require_judged(val: Split) -> None:
    """Raise an error if no group has a second sample, on which the choice of settings could be judged."""
    require(
        int(torch.bincount(groups_of(val).id).max()) > 1,
        "Every group of the validation data has one sample only, so that none is left to choose by; hold more out.",
    )


def small_group_warnings(group: Tensor) -> list[str]:
    """A sentence where groups have too few samples to be fitted and judged.

    >>> small_group_warnings(torch.tensor([0, 0, 1, 1]))
    []
    """
    lone = int((torch.bincount(group) == 1).sum())
    if not lone:
        return []
    some = f"{lone} of {int(group.max()) + 1} groups of the validation data have one sample"
    return [f"{some}, so that balanced draws have one of each and nothing was chosen by these groups; hold more out."]


def balanced_head(data: Labelled, others: Others | None, classes: int, plan: Plan, session: Session) -> Found:
    """Choose strength and share on one half of each group, then average fits on balanced draws from all samples.

    Features are standardised by the statistics of all of ``data``. The setting with the best worst group, on the half
    that was not fitted, wins; ties go to the best mean over groups, then to the best accuracy, then to the first.
    """
    scale = Scale.of(data.x)
    data = data._replace(x=scale.apply(data.x))
    others = others and others._replace(x=scale.apply(others.x))
    fitted, judged = halves(data.group, stream(session.seed, STAGE, "halves"))
    judge, right = data.at(judged), []
    judge = judge._replace(group=judge.group.unique(return_inverse=True)[1])  # a group of one sample is only fitted
    for number, share in enumerate(plan.shares):
        some = _draw(data.at(fitted), others, share, stream(session.seed, STAGE, "tuning", number))
        right.append(_fit(some, classes, plan.strengths, plan.steps).right(judge.x, judge.y))
        session.progress(STAGE, (number + 1) / (len(plan.shares) + plan.fits))
    correct = torch.cat(right)
    best = choose("worst_group", correct, judge.group)
    share, strength = plan.shares[best // len(plan.strengths)], plan.strengths[best % len(plan.strengths)]
    kept = []
    for number in range(plan.fits):
        some = _draw(data, others, share, stream(session.seed, STAGE, number))
        kept.append(_fit(some, classes, [strength], plan.steps))
        session.progress(STAGE, (len(plan.shares) + number + 1) / (len(plan.shares) + plan.fits))
    mean = Heads(*(torch.cat(values) for values in zip(*kept, strict=True))).mean()
    score = float(scores("worst_group", correct, judge.group)[best])
    zero = float((mean.weight == 0).double().mean())
    chosen = {"strength": strength, "share": share, "score": score}
    figures = {"chosen": chosen, "zero_weights": zero, "fitted_samples": len(some.y)}
    return Found(scale.undo(mean), figures, small_group_warnings(data.group))


def halves(group: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The places of two random halves of every group; the first half of an odd number has one more."""
    parts: tuple[list[Tensor], list[Tensor]] = ([], [])
    for members in _members(group, generator):
        for part, own in zip(parts, members.tensor_split([(len(members) + 1) // 2]), strict=True):
            part.append(own)
    return torch.cat(parts[0]), torch.cat(parts[1])


def balanced(group: Tensor, generator: torch.Generator) -> Tensor:
    """The places of as many samples of every group as the smallest has, drawn without replacement."""
    members = _members(group, generator)
    least = min(len(own) for own in members)
    return torch.cat([own[:least] for own in members])


def _members(group: Tensor, generator: torch.Generator) -> list[Tensor]:
    """The places of each group's samples, in random order."""
    order = torch.randperm(len(group), generator=generator)
    return [order[group[order] == number] for number in range(int(group.max()) + 1)]


def _draw(data: Labelled, others: Others | None, share: float, generator: torch.Generator) -> Labelled:
    """A balanced draw; with ``others``, the mixtures of it with samples of the same class from both sets together.

    Each class then has as many mixtures as the smallest class has samples, none of which is in two of them.
    """
    some = data.at(balanced(data.group, generator))
    if others is None:
        return some
    x, y = torch.cat([data.x, others.x]), torch.cat([data.y, others.y])
    labels = some.y.unique().tolist()
    each = min(int((y == label).sum()) for label in labels)
    near, far = [], []
    for label in labels:
        own, there = (some.y == label).nonzero().squeeze(1), (y == label).nonzero().squeeze(1)
        near.append(own[torch.randint(len(own), (each,), generator=generator)])
        far.append(there[torch.randperm(len(there), generator=generator)[:each]])
    own, there = torch.cat(near), torch.cat(far)
    return Labelled(share * some.x[own] + (1 - share) * x[there], y[there], some.group[own])


def _fit(some: Labelled, classes: int, strengths: Sequence[float], steps: int) -> Heads:
    n = len(some.y)
    l1 = 1 / (n * torch.tensor(strengths, dtype=torch.float64))  # C times the summed loss is C n times the mean loss
    even = some.x.new_full((n,), 1 / n)
    return fit_heads(some.x, some.y, even, zero_heads(len(strengths), classes, some.x), Penalty(l1=l1), steps)
