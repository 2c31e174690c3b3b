"""A grid search as a table and as ULE's Figure 4, from the facts that `ule_last_layer` leaves in a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unspur.report.charts import Chart, share_chart

DRAWN = ("grid", "sensitivity")  # the facts that are drawn here, and too long to be written out
RULES = {  # of what validation samples the accuracy is, by the rules of select.py
    "worst_group": "of the worst group",
    "worst_class": "of the worst class",
    "mined_group": "over mined groups",
    "mean": "of all",
}


@dataclass(frozen=True)
class Grid:
    """A grid search: how much lambda matters, and every setting, the best first."""

    chart: Chart | None
    rows: tuple[tuple[str, ...], ...]


def grid(facts: Mapping[str, Any]) -> Grid | None:
    """What the page shows of a grid search; None if there was none, or but one setting."""
    rows = grid_table(facts)
    return Grid(sensitivity_chart(facts), rows) if len(rows) > 1 else None


def sensitivity_chart(facts: Mapping[str, Any]) -> Chart | None:
    """The best validation accuracy that was reached with each lambda; None if there is nothing to draw.

    It is Figure 4 but for what `ule_last_layer.sensitivity` says.
    """
    rows = facts.get("sensitivity", ())
    points = sorted((row["lam"], row["score"]) for row in rows if row["score"] is not None)
    title = f"best validation accuracy {RULES.get(facts.get('rule', ''), '')}".strip()
    return share_chart(title, points, "lambda") if len(points) > 1 else None


def grid_table(facts: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
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
