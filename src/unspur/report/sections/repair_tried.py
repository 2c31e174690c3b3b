"""What a repair tried: scores, what became of each candidate, its cost and its command."""

from __future__ import annotations

from unspur.report.repair_context import RepairContext
from unspur.report.section import Section

REPAIR_TRIED: Section[RepairContext] = Section("repair_tried", lambda context: context)
