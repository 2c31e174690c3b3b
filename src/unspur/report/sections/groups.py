"""The accuracy of every group of every test set."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.context import RunContext
from unspur.report.scores import Scored
from unspur.report.section import Section


@dataclass(frozen=True)
class GroupTables:
    tests: tuple[Scored, ...]


GROUPS = Section[RunContext]("groups", lambda run: GroupTables(run.tests), lambda run: bool(run.tests))
