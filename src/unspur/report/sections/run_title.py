"""Which run a part of the page is about, how it ended, and what a reader must know before any figure."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.context import RunContext
from unspur.report.section import Section


@dataclass(frozen=True)
class RunTitle:
    label: str
    method: str
    about: str
    arch: str
    dataset: str
    seed: int
    status: str
    reason: str
    warnings: tuple[str, ...]


def view(run: RunContext) -> RunTitle:
    config = run.run.config
    return RunTitle(
        label=run.label,
        method=run.method,
        about=run.about,
        arch=config.arch.name,
        dataset=run.data.data.name,
        seed=config.seed,
        status=run.status,
        reason=run.reason,
        warnings=run.warnings,
    )


RUN_TITLE = Section("run_title", view)
