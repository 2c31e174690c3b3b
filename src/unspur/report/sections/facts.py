"""What was measured on the way and is shown nowhere else, written out."""

from __future__ import annotations

from unspur.report.context import RunContext
from unspur.report.section import Section
from unspur.report.sections.grid_search import GRID_SEARCH
from unspur.report.sections.mining import MINING
from unspur.report.sections.pruning import PRUNING
from unspur.report.sections.selection import SELECTION
from unspur.report.settings import plain

SHOWING: tuple[Section[RunContext], ...] = (MINING, PRUNING, SELECTION, GRID_SEARCH)


def remaining(run: RunContext) -> tuple[tuple[str, str], ...]:
    """The facts that no other section shows."""
    shown = {fact for section in SHOWING if section.applies(run) for fact in section.facts}
    return tuple((name, plain(value)) for name, value in run.facts.items() if name not in shown)


FACTS = Section("facts", remaining, lambda run: bool(remaining(run)))
