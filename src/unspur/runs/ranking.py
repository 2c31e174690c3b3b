"""Who is best where: ranks over data sets and seeds, with intervals."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TypedDict

import torch

from unspur.core.seeds import stream

DRAWS = 2000  # of blocks with replacement, for an interval
FEWEST = 6  # blocks: resampling fewer, such as the three seeds of one set, gives hardly more than their range


class Rank(TypedDict):
    """A mean rank, 1 being the best, over so many blocks (a data set with a seed), and its 95 % interval."""

    rank: float
    ci95: list[float] | None
    blocks: int


Score = tuple[float, ...]  # by the first number, of equal ones by the next


def ranks(scores: Mapping[str, Score]) -> dict[str, float]:
    """The rank of each score, the highest first; equal ones share the mean of their ranks.

    >>> ranks({"erm": (0.0, 0.5), "jtt": (0.0, 0.8), "irm": (0.0, 0.5), "dfr": (0.1, 0.4)})
    {'erm': 3.5, 'jtt': 2.0, 'irm': 3.5, 'dfr': 1.0}
    """
    return {
        name: 1 + sum(other > own for other in scores.values()) + (sum(o == own for o in scores.values()) - 1) / 2
        for name, own in scores.items()
    }


def mean_ranks(blocks: Sequence[Mapping[str, Score]]) -> dict[str, Rank]:
    """Each name's mean rank over the blocks that have it, the best first.

    The interval is that of a bootstrap over blocks, of which there must be enough.
    """
    seen: dict[str, list[float]] = {}
    for block in blocks:
        for name, rank in ranks(block).items():
            seen.setdefault(name, []).append(rank)
    found: dict[str, Rank] = {
        name: {"rank": statistics.fmean(own), "ci95": _interval(own), "blocks": len(own)} for name, own in seen.items()
    }
    return dict(sorted(found.items(), key=lambda item: item[1]["rank"]))


def _interval(values: Sequence[float]) -> list[float] | None:
    if len(values) < FEWEST:
        return None
    drawn = torch.randint(len(values), (DRAWS, len(values)), generator=stream(0, "ranks"))
    means = torch.tensor(values, dtype=torch.float64)[drawn].mean(1)
    return means.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
