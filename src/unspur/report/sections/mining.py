"""Which training samples a method took for bias-conflicting, and how often that was right, where it is known."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.context import RunContext
from unspur.report.scores import Share
from unspur.report.section import Section


@dataclass(frozen=True)
class MiningView:
    count: int
    of: int
    by_class: tuple[tuple[str, int], ...]
    precision: Share | None
    recall: Share | None


def view(run: RunContext) -> MiningView:
    facts, data = run.facts, run.data.data
    quality = facts.get("mining", {"precision": None, "recall": None})
    precision, recall = (None if value is None else Share(value) for value in (quality["precision"], quality["recall"]))
    by_class = tuple(zip(data.classes, facts["mined_by_class"], strict=True))
    return MiningView(facts["mined"], len(data.train), by_class, precision, recall)


MINING = Section("mining", view, lambda run: "mined_by_class" in run.facts, facts=("mined", "mined_by_class", "mining"))
