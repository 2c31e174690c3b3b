"""The scores of a run as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from unspur.cli.show.console import console, percent
from unspur.evaluation.scores import ScoreName, TestScores
from unspur.runs.result import Result

COLUMNS: dict[ScoreName, str] = {
    "accuracy": "accuracy",
    "worst_group_accuracy": "worst group",
    "aligned_accuracy": "aligned",
    "conflicting_accuracy": "conflicting",
}


def print_result(result: Result) -> None:
    """A table of a run's test sets, its earlier stages first."""
    if result["status"] != "done":
        console().print(f"{_title(result)} {result['status']}: {result['reason']}", markup=False)
        return
    table = Table(title=escape(_title(result)), title_justify="left")
    table.add_column("stage")
    table.add_column("test set")
    for heading in COLUMNS.values():
        table.add_column(heading, justify="right")
    table.add_column("n", justify="right")
    for stage, tests in _stages(result):
        for name, scores in tests.items():
            cells = [percent(scores[key]) for key in COLUMNS]
            table.add_row(stage, name, *cells, f"{scores['n']:,}")
    console().print(table)
    for warning in result.get("warnings", ()):
        console().print(f"Warning: {warning}", markup=False)


def print_coverage(selective: Mapping[str, Any], coverage: float) -> None:
    """What abstaining brings on each test set, and on each of its groups."""
    table = Table(
        title=f"Answering {percent(coverage)} of the images; thresholds from validation data", title_justify="left"
    )
    for heading in ("test set", "mode"):
        table.add_column(heading)
    for heading in ("coverage", "error", "AURC", "worst group error", "lowest coverage"):
        table.add_column(heading, justify="right")
    for test, modes in selective.items():
        for mode, block in modes.items():
            errors = [group["error"] for group in block["groups"] if group["error"] is not None]
            worst = percent(max(errors)) if errors else "-"
            least = percent(min(group["coverage"] for group in block["groups"]))
            table.add_row(
                test, mode, percent(block["coverage"]), percent(block["error"]), f"{block['aurc']:.4f}", worst, least
            )
    console().print(table)


def _stages(result: Result) -> Iterator[tuple[str, Mapping[str, TestScores]]]:
    for stage, block in result.get("stages", {}).items():
        yield stage, block["tests"]
    yield "result", result["tests"]


def _title(result: Result) -> str:
    return f"{result['method']} on {result['dataset']}, {result['arch']}, seed {result['seed']}"
