"""What each stage of a run scores, and the way from what a repair began with to its result."""

from __future__ import annotations

from collections.abc import Sequence

from unspur.report.charts import Chart, stage_chart
from unspur.report.context import RunContext, StageScores
from unspur.report.scores import Scored
from unspur.report.section import Section


def view(run: RunContext) -> tuple[Chart, ...]:
    """None where a stage was trained beside the result and not before it."""
    return charts(run.stages, run.tests) if run.repaired else ()


def charts(stages: Sequence[StageScores], result: Sequence[Scored]) -> tuple[Chart, ...]:
    """The accuracy on each test set from stage to stage, and of the result."""
    drawn = []
    for test in result:
        scores = [(stage.name, own.accuracy.value) for stage in stages for own in stage.tests if own.name == test.name]
        drawn.append(stage_chart(f"accuracy on test “{test.name}”", [*scores, ("result", test.accuracy.value)]))
    return tuple(drawn)


STAGES = Section("stages", view, lambda run: bool(run.tests and run.stages))
