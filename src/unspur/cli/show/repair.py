"""A repair in a few lines: what came of it, and a line a candidate."""

from __future__ import annotations

import typer

from unspur.practice.repair.state import RepairJSON, TriedJSON


def print_repair(state: RepairJSON) -> None:
    """The sentence, the models compared, and the swap test before and after."""
    typer.echo(state["sentence"] or "")
    baseline = state["baseline"]
    if baseline and (scores := baseline["scores"]):
        swapped = "" if scores["swapped"] is None else f", {scores['swapped']:.1%} with the cue of another class"
        typer.echo(f"  before: right on {scores['ordinary']:.1%} of validation images{swapped}")
    for row in state["tried"]:
        typer.echo(f"  {tried_line(row)}")
    for change in state["reliance"]:
        if change["before"] is not None and change["after"] is not None:
            # Beyond the control: fewer than the control's is none, where a negative share would only puzzle.
            before, after = (max(0.0, share) for share in (change["before"], change["after"]))
            typer.echo(f"  predictions that follow {change['what']}: {before:.0%} before, {after:.0%} after")
    for note in state["notes"]:
        typer.echo(f"Note: {note}")


def tried_line(row: TriedJSON) -> str:
    """A candidate with what it scores, and what became of it."""
    scores = row["scores"]
    if scores is None:
        return f"{row['name']}: {row['status']}. {row['reason'] or ''}".rstrip()
    swapped = "" if scores["swapped"] is None else f", {scores['swapped']:.1%} with the cue of another class"
    return f"{row['name']}: right on {scores['ordinary']:.1%} of validation images{swapped}: {row['reason']}"
