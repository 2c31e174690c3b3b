"""`unspur compare`: the page about a comparison of methods."""

from __future__ import annotations

from pathlib import Path

from unspur.report.page import Failure, Page, Part, placed, write_page
from unspur.report.sections.method_dots import METHOD_DOTS
from unspur.report.sections.method_ranks import METHOD_RANKS
from unspur.report.sections.method_scores import METHOD_SCORES
from unspur.runs.comparison import Comparison


def write_comparison(found: Comparison, out: Path) -> list[Failure]:
    """Write the page to the file ``out``; returns which of its sections failed."""
    parts = [
        Part(f"data-{number}", block["dataset"], placed([METHOD_SCORES, METHOD_DOTS], block))
        for number, block in enumerate(found["datasets"])
    ]
    return write_page(Page("unspur compare", placed([METHOD_RANKS], found), parts), out)
