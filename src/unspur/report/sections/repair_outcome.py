"""What a repair came to, in one sentence."""

from __future__ import annotations

from unspur.report.repair_context import RepairContext
from unspur.report.section import Section

REPAIR_OUTCOME: Section[RepairContext] = Section("repair_outcome", lambda context: context)
