"""The analysis of a run as tables."""

from __future__ import annotations

from rich.table import Table

from unspur.cli.show.console import console
from unspur.evaluation.figures import figures
from unspur.runs.analyze import StoredAnalysis


def print_analysis(found: StoredAnalysis) -> None:
    """An analysis: its figures, the pruning curves, and what could not be computed."""
    table = Table(title=f"On {found['test']}, activations of {found['samples']:,} inputs", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures(found).items():
        table.add_row(name, f"{value:.4g}")
    out = console()
    out.print(table)
    curves = {unit: curve for unit, curve in found["prunability"].items() if curve}
    if curves:
        table = Table(title="Share of accuracy left after pruning a share of", title_justify="left")
        table.add_column("")
        for kappa in next(iter(curves.values()))["kappas"]:
            table.add_column(f"{kappa:g}", justify="right")
        for unit, curve in curves.items():
            table.add_row(f"{unit}s", *(f"{share:.2f}" for share in curve["retained"]))
        out.print(table)
    for warning in found.get("warnings", ()):
        out.print(f"Warning: {warning}", highlight=False, markup=False)
    for what, reason in found["unknown"].items():
        out.print(f"Not known: {what}. {reason}", highlight=False, markup=False)
