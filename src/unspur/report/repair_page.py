"""`unspur repair`: the page about a repair."""

from __future__ import annotations

from pathlib import Path

from unspur.report.page import Failure, Page, Part, placed, write_page
from unspur.report.repair_context import RepairContext
from unspur.report.sections.repair_before_after import REPAIR_BEFORE_AFTER
from unspur.report.sections.repair_outcome import REPAIR_OUTCOME
from unspur.report.sections.repair_pictures import REPAIR_PICTURES
from unspur.report.sections.repair_tried import REPAIR_TRIED


def write_repair(context: RepairContext, out: Path) -> list[Failure]:
    """Write the page to the file ``out``; returns which of its sections failed."""
    return write_page(page_of(context), out)


def page_of(context: RepairContext) -> Page:
    """The parts of the page: the outcome above, then before and after, pictures, and what was tried."""
    parts = []
    if context.scores:
        parts.append(Part("scores", "Before and after", placed([REPAIR_BEFORE_AFTER], context)))
    if context.pictures:
        parts.append(Part("pictures", "Pictures", placed([REPAIR_PICTURES], context)))
    if context.tried:
        parts.append(Part("tried", "What was tried", placed([REPAIR_TRIED], context)))
    return Page(f"unspur repair: {context.name}", placed([REPAIR_OUTCOME], context), parts)
