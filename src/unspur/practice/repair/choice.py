"""Which candidate replaces the baseline, if any: better where the shortcut misleads, and no harm elsewhere.

A candidate must be better on the evidence (validation images with swapped cues, mined ones, or groups that the user
labelled) by a paired test, corrected for the number of candidates; and the corrected bound of what it loses on ordinary
images must lie within a margin. What a leak adds to the accuracy on ordinary images is not worth keeping, so if there
is a leak, the ordinary images are those with the leak removed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from unspur.core.seeds import stream

LEVEL = 0.05  # of all tests together
FLIPS = 20_000  # random sign flips in the paired test

Reason = Literal["chosen", "not better", "harms", "better, but another is best", "failed"]


class Difference(NamedTuple):
    """The mean over groups of a paired difference."""

    mean: float
    error: float  # its standard error
    p: float  # of a mean this high without any difference

    def low(self, tests: int) -> float:
        """The lower bound of the mean at the corrected level."""
        return self.mean - NormalDist().inv_cdf(1 - LEVEL / tests) * self.error


def paired(candidate: Tensor, baseline: Tensor, group: Tensor, seed: int = 0) -> Difference:
    """Compare two models' scores on the same images, with equal weight for each group; -1 counts in no group.

    The p-value is that of random sign flips: if the models do not differ, each image's difference could equally well
    have the opposite sign.

    >>> paired(torch.ones(8), torch.zeros(8), torch.zeros(8).long()).p < 0.01  # all eight the same way: 1 in 256
    True
    """
    counted = group >= 0
    gains, group = (candidate - baseline)[counted].double(), group[counted]
    sizes = torch.bincount(group)
    groups = int((sizes > 0).sum())
    weight = 1 / (groups * sizes[group].double())
    mean = float(weight @ gains)
    moved = gains != 0
    if not bool(moved.any()):
        return Difference(0.0, 0.0, 1.0)
    centred = gains - torch.zeros(len(sizes), dtype=torch.double).index_add_(0, group, gains / sizes[group])[group]
    spread = weight.square() * centred.square() * (sizes / (sizes - 1).clamp_min(1))[group]
    sizes_of_moves = (weight * gains)[moved]
    generator, above = stream(seed, "paired test"), 0
    for _ in range(FLIPS // 1000):
        signs = torch.randint(0, 2, (1000, len(sizes_of_moves)), generator=generator).double() * 2 - 1
        above += int((signs @ sizes_of_moves >= mean - 1e-12).sum())
    return Difference(mean, math.sqrt(float(spread.sum())), (1 + above) / (1 + FLIPS))


@dataclass(frozen=True)
class Judgement:
    """A candidate against the baseline."""

    gain: Difference  # on the evidence
    ordinary: Difference  # on images as they are, or without a leak
    reason: Reason

    @property
    def better(self) -> bool:
        return self.reason in ("chosen", "better, but another is best")


class Scores(NamedTuple):
    """A model's score for each image: on the evidence, and on ordinary images."""

    evidence: Tensor
    ordinary: Tensor


def judge(
    baseline: Scores,
    candidates: Sequence[Scores],
    *,
    evidence_group: Tensor,
    ordinary_group: Tensor,
    margin: float,
    seed: int = 0,
) -> list[Judgement]:
    """A judgement for each candidate; at most one is chosen: among those that do no harm, the best on the evidence."""
    found = []
    tests = max(1, len(candidates))
    for each in candidates:
        gain = paired(each.evidence, baseline.evidence, evidence_group, seed)
        ordinary = paired(each.ordinary, baseline.ordinary, ordinary_group, seed)
        better = gain.mean > 0 and gain.p <= LEVEL / tests
        harms = ordinary.low(tests) < -margin
        reason: Reason = "not better" if not better else "harms" if harms else "better, but another is best"
        found.append(Judgement(gain, ordinary, reason))
    fit = [number for number, each in enumerate(found) if each.better]
    if fit:
        best = max(fit, key=lambda number: (found[number].gain.mean, found[number].ordinary.mean))
        found[best] = Judgement(found[best].gain, found[best].ordinary, "chosen")
    return found
