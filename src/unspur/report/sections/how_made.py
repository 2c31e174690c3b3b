"""How a run was made: its machine, and every setting."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.context import RunContext
from unspur.report.section import Section
from unspur.report.settings import Setting, plain, settings


@dataclass(frozen=True)
class HowMade:
    machine: tuple[tuple[str, str], ...]
    settings: tuple[Setting, ...]


def view(run: RunContext) -> HowMade:
    names = ("seconds", "machine", "threads", "devices", "version", "commit")
    known = [(name, value) for name, value in (run.result or {}).items() if name in names]
    machine = [("folder", run.run.folder.resolve().name), *((name, plain(value)) for name, value in known)]
    return HowMade(tuple(machine), settings(run.run.config))


HOW_MADE = Section("how_made", view)
