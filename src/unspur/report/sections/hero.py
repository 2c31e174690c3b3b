"""The pictures below the headline: what the model gets wrong in the group that the shortcut misleads most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from unspur.report.context import RunContext, RunsContext
from unspur.report.group_rows import split_rows
from unspur.report.maps import Tile, tiles
from unspur.report.section import Section
from unspur.report.sections.gallery import in_order

SHOWN = 4


@dataclass(frozen=True)
class Hero:
    who: str
    test: str
    group: str
    tile: int
    tiles: tuple[Tile, ...]


class Misled(NamedTuple):
    """A conflicting group, and those of its samples that a run gets wrong."""

    accuracy: float
    run: RunContext
    test: str
    group: str
    wrong: Tensor


def most_misled(page: RunsContext) -> Misled | None:
    """Of all runs and test sets, the conflicting group with the lowest accuracy; None if none is ever wrong."""
    found = []
    for run in page.runs:
        for test in run.tests if run.data.drawn else ():
            split, predicted = run.data.data.tests[test.name], run.logits(test.name).argmax(1)
            for title, aligned, samples in split_rows(split, run.data.data).rows:
                wrong = in_order(samples)
                wrong = wrong[predicted[wrong] != split.y[wrong]]
                if aligned is False and len(wrong):
                    found.append(Misled(1 - len(wrong) / len(samples), run, test.name, title, wrong))
    return min(found, key=lambda misled: misled.accuracy) if found else None


def view(page: RunsContext) -> Hero | None:
    if (misled := most_misled(page)) is None:
        return None
    run, data = misled.run, misled.run.data.data
    predicted = run.logits(misled.test).argmax(1)
    shown = tiles(data.tests[misled.test], misled.wrong[:SHOWN], predicted, data.classes, run.explainer())
    who = run.label + (f" on {data.name}" if len(page.by_data) > 1 else "")
    return Hero(who, misled.test, misled.group, run.data.tile, shown)


HERO = Section("hero", view)
