"""The scores of a run at a glance: its training, and a card for each test set."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.context import RunContext
from unspur.report.section import Section


@dataclass(frozen=True)
class TrainingScore:
    """The training accuracy of the last epoch that noted one."""

    stage: str
    accuracy: float


def view(run: RunContext) -> TrainingScore | None:
    noted = [TrainingScore(line["stage"], line["accuracy"]) for line in run.log if "accuracy" in line]
    return noted[-1] if noted else None


SUMMARY = Section("summary", view, lambda run: bool(run.tests))
