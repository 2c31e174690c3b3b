"""Which methods are best over all data sets and seeds."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.section import Section
from unspur.runs.comparison import Comparison
from unspur.runs.ranking import Rank


@dataclass(frozen=True)
class MethodRank:
    """A method's mean rank by both choices, and whose group labels it reads."""

    method: str
    reads: str
    with_groups: Rank | None
    without: Rank | None


@dataclass(frozen=True)
class Ranks:
    """The ranks, and what they are of."""

    rows: tuple[MethodRank, ...]
    blocks: int  # that the ranks are means over, of a method that ran everywhere
    command: str
    seeds: int
    candidates: int
    datasets: int
    done: int
    of: int


def view(found: Comparison) -> Ranks:
    with_groups, without = found["ranks"]["groups"], found["ranks"]["none"]
    reads = {row["method"]: row["groups"] for block in found["datasets"] for row in block["rows"]}
    ranked = without or with_groups
    rows = tuple(MethodRank(name, reads[name], with_groups.get(name), without.get(name)) for name in ranked)
    counts = len(found["seeds"]), found["candidates"], len(found["datasets"]), found["done"], found["of"]
    return Ranks(rows, max((rank["blocks"] for rank in ranked.values()), default=0), found["command"], *counts)


METHOD_RANKS: Section[Comparison] = Section("method_ranks", view)
