"""A grid search as a table and as ULE's Figure 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, cast

from unspur.methods.facts import Facts
from unspur.parts.select import Rule
from unspur.report.charts import Chart, share_chart
from unspur.report.context import RunContext
from unspur.report.section import Section

RULES: dict[Rule, str] = {  # of what validation samples the accuracy is, by the rules of select.py
    "worst_group": "of the worst group",
    "worst_class": "of the worst class",
    "mined_group": "over mined groups",
    "mean": "of all",
    "swapped": "with the cue of another class",
    "swapped_worst": "of the worst class, with the cue of another",
}


class GridRow(TypedDict):
    """A setting, and its best score and the epoch of it; None if it diverged."""

    lam: float
    lr: float
    l2: float
    score: float | None
    epoch: int | None


class LambdaRow(TypedDict):
    """The best score that any setting with this lambda reached."""

    lam: float
    score: float | None


class GridFacts(Facts, total=False):
    """What a grid search adds to the facts of a result."""

    rule: Rule
    grid: list[GridRow]
    sensitivity: list[LambdaRow]


@dataclass(frozen=True)
class GridView:
    """How much lambda matters, and every setting, the best first."""

    chart: Chart | None
    rows: tuple[tuple[str, ...], ...]


def view(run: RunContext) -> GridView:
    facts = cast(GridFacts, run.facts)
    return GridView(sensitivity_chart(facts), grid_table(facts))


def searched(run: RunContext) -> bool:
    """Whether there was more than one setting to choose from."""
    return len(cast(GridFacts, run.facts).get("grid", ())) > 1


def sensitivity_chart(facts: GridFacts) -> Chart | None:
    """The best validation accuracy that was reached with each lambda; None if there is nothing to draw.

    It is Figure 4 but for what `ule_last_layer.sensitivity` says.
    """
    rows = facts.get("sensitivity", ())
    points = sorted((row["lam"], row["score"]) for row in rows if row["score"] is not None)
    title = f"best validation accuracy {RULES[facts['rule']] if 'rule' in facts else ''}".strip()
    return share_chart(title, points, "lambda") if len(points) > 1 else None


def grid_table(facts: GridFacts) -> tuple[tuple[str, ...], ...]:
    """A row for each lambda, learning rate and L2, the best first, with its best epoch; no rows without a grid.

    >>> row = {"lam": 0.5, "lr": 0.01, "l2": 1.0, "score": 0.875, "epoch": 20}
    >>> grid_table({"grid": [row | {"score": None, "epoch": None, "lr": 9.0}, row]})
    (('0.5', '0.01', '1', '87.5 %', '20'), ('0.5', '9', '1', 'diverged', ''))
    """
    ordered = sorted(
        facts.get("grid", ()), key=lambda row: -1.0 if row["score"] is None else row["score"], reverse=True
    )
    return tuple(
        (
            *(f"{row[name]:g}" for name in ("lam", "lr", "l2")),
            "diverged" if row["score"] is None else f"{100 * row['score']:.1f} %",
            "" if row["epoch"] is None else str(row["epoch"]),
        )
        for row in ordered
    )


GRID_SEARCH = Section("grid_search", view, searched, facts=("grid", "sensitivity"))
