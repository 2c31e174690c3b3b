"""A comparison of methods as tables."""

from __future__ import annotations

from rich.table import Table

from unspur.cli.show.console import console
from unspur.runs.comparison import Block, Comparison, Row, Spread
from unspur.runs.ranking import Rank


def print_comparison(found: Comparison) -> None:
    """A table for each data set, and then the ranks."""
    out = console()
    for block in found["datasets"]:
        out.print(_table(block))
        if any("mining" in row for row in block["rows"]):
            out.print(_mining(block))
    out.print(_ranks(found))
    for block in found["datasets"]:
        for row in block["rows"]:
            if row["left_out"]:
                out.print(f"{row['method']} is left out on {block['dataset']}: {row['left_out']}", highlight=False)


def _table(block: Block) -> Table:
    title = f"{block['dataset']}, test '{block['test']}', {block['arch']}; chosen with and without validation groups"
    table = Table(title=title, title_justify="left")
    table.add_column("method")
    table.add_column("reads groups of")
    for name in ("worst, with", "worst, without", "mean, with", "mean, without", "cost"):
        table.add_column(name, justify="right")
    for row in sorted((row for row in block["rows"] if not row["left_out"]), key=_order, reverse=True):
        cells = [_score(row[score][choice]) for score in ("worst", "mean") for choice in ("groups", "none")]
        cost = "-" if row["cost"] is None else f"{row['cost']:.1f}"
        table.add_row(row["method"], row["groups"], *cells, cost)
    return table


def _mining(block: Block) -> Table:
    title = (
        f"{block['dataset']}, runs chosen without validation groups: how much of what was mined goes against the "
        "shortcut, and how much of that was mined"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("method")
    for name in ("precision", "recall"):
        table.add_column(name, justify="right")
    for row in block["rows"]:
        if mining := row.get("mining"):
            table.add_row(row["method"], _score(mining["precision"]), _score(mining["recall"]))
    return table


def _order(row: Row) -> list[float]:
    return [score["mean"] if score else -1.0 for score in (row["worst"]["none"], row["mean"]["none"])]


def _score(score: Spread | None) -> str:
    if score is None:
        return "-"
    spread = "" if score["deviation"] is None else f" ± {100 * score['deviation']:.1f}"
    return f"{100 * score['mean']:.1f}{spread}"


def _ranks(found: Comparison) -> Table:
    table = Table(title="Mean rank by the worst group, with 95 % intervals from six blocks on", title_justify="left")
    table.add_column("method")
    table.add_column("reads groups of")
    for name in ("chosen with groups", "chosen without"):
        table.add_column(name, justify="right")
    ranks = found["ranks"]
    reads = {row["method"]: row["groups"] for block in found["datasets"] for row in block["rows"]}
    ranked = ranks["none"] or ranks["groups"]
    most = max((rank["blocks"] for rank in ranked.values()), default=0)
    for method in ranked:
        table.add_row(method, reads[method], *(_rank(ranks[choice].get(method), most) for choice in ("groups", "none")))
    return table


def _rank(rank: Rank | None, most: int) -> str:
    """The mean rank, its interval, and in how many blocks it was of the ``most`` that a method has."""
    if rank is None:
        return "-"
    interval = f" ({rank['ci95'][0]:.1f} to {rank['ci95'][1]:.1f})" if rank["ci95"] else ""
    return f"{rank['rank']:.1f}{interval}" + (f" in {rank['blocks']} of {most}" if rank["blocks"] < most else "")
