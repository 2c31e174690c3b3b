"""A grid search as a table and as ULE's Figure 4, from the facts that `ule_last_layer` leaves in a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unspur.report.curves import Chart, share_chart

DRAWN = ("grid", "sensitivity")  # the facts that are drawn here, and too long to be written out


def sensitivity_chart(facts: Mapping[str, Any]) -> Chart | None:
    """The best validation accuracy that was reached with each lambda (Figure 4); None if there is nothing to draw."""
    rows = facts.get("sensitivity", ())
    points = sorted((row["lam"], row["score"]) for row in rows if row["score"] is not None)
    return share_chart("validation accuracy over lambda", points) if len(points) > 1 else None


def grid_table(facts: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """A row for each lambda, L2 and learning rate, the best first, with its best epoch; no rows without a grid.

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
