"""Published tables, ours beside theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from unspur.cli.show.console import console, with_deviation


def print_tables(listed: Sequence[Mapping[str, str]]) -> None:
    """Every table that can be reproduced."""
    for entry in listed:
        console().print(f"[bold]{entry['table']}[/bold]  {entry['caption']}", highlight=False)


def print_table(outcome: Mapping[str, Any]) -> None:
    """A reproduced table: ours beside theirs, cell by cell, and what was skipped."""
    quick = " (quick settings: not comparable)" if outcome["quick"] else ""
    table = Table(title=f"{outcome['table']}: {outcome['caption']}{quick}", title_justify="left")
    for heading in ("row", "column"):
        table.add_column(heading)
    for heading in ("published", "ours", "seeds"):
        table.add_column(heading, justify="right")
    for cell in outcome["cells"]:
        digits = 3 if cell["published"] is not None and abs(cell["published"]) < 2 else 2  # shares not in per cent
        theirs = with_deviation(cell["published"], cell["published_deviation"], digits)
        ours = with_deviation(cell["ours"], cell["ours_deviation"], digits) if cell["values"] else cell["why_none"]
        seeds = str(len(cell["values"])) if cell["values"] else ""
        table.add_row(cell["row"], cell["column"], theirs, "" if ours == "quoted" else ours, seeds)
    out = console()
    out.print(table)
    if outcome["differs"]:
        out.print(f"What we do differently: {outcome['differs']}", highlight=False, markup=False)
    if outcome["settings"]:
        out.print(f"Also set here: {', '.join(outcome['settings'])}.", highlight=False, markup=False)
    for setup, reason in outcome["skipped"].items():
        out.print(f"Skipped {setup}: {reason}", highlight=False, markup=False)
