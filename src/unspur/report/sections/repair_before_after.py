"""Accuracy with and without the cue, by class, and the swap test: before a repair and after it."""

from __future__ import annotations

from unspur.report.repair_context import RepairContext
from unspur.report.section import Section

REPAIR_BEFORE_AFTER: Section[RepairContext] = Section("repair_before_after", lambda context: context)
