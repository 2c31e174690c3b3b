"""Training curves, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.charts import StageCharts, stage_charts
from unspur.report.context import RunContext
from unspur.report.section import Section


@dataclass(frozen=True)
class TrainingView:
    stages: tuple[StageCharts, ...]


TRAINING = Section[RunContext]("training", lambda run: TrainingView(stage_charts(run.log)))
