"""A sweep and a search for a learning rate as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from unspur.cli.show.console import console, percent, with_deviation
from unspur.runs.rates import RateSearch
from unspur.runs.search import SearchSummary
from unspur.runs.summary import PointSummary, Spread, SweepSummary


def print_sweep(found: SweepSummary) -> None:
    """A sweep: a line for each score, a column for each point of the grid, and then each score's rank correlations."""
    points, out = found["points"], console()
    names = list(dict.fromkeys(name for point in points for name in point["scores"]))
    out.print(f"{found['method']} on {found['dataset']}, {found['arch']}", style="italic", highlight=False)
    for table in _fitting(out, points, names):
        out.print(table)
    if names:
        out.print(_correlations(found, names))
    if found["usable_range"]:
        (key,), (low, high) = points[0]["settings"], found["usable_range"]
        out.print(f"Usable {key}: from {low:g} to {high:g}.", highlight=False, markup=False)


def print_search(found: SearchSummary) -> None:
    """A sweep of the points that a search tried, and the best of them."""
    print_sweep(found)
    search = found["search"]
    chosen = " ".join(f"{key}={value}" for key, value in search["best"].items())
    rules = {"worst_class": "accuracy of the worst class", "worst_group": "accuracy of the worst group"}
    rule = f"{rules.get(search['rule'], 'accuracy')} on validation data"
    best = f"Best of {search['trials']} trials by the {rule}: {chosen} ({percent(search['value'])})."
    console().print(best, highlight=False, markup=False)


def _fitting(out: Console, points: Sequence[PointSummary], names: Sequence[str]) -> Iterator[Table]:
    """The points side by side in one table, or in as many as it takes for each to fit the console."""
    table = _points(points, names)
    half = len(points) // 2
    if half and out.measure(table, options=out.options.update(width=10_000)).maximum > out.width:
        yield from _fitting(out, points[:half], names)
        yield from _fitting(out, points[half:], names)
    else:
        yield table


def _points(points: Sequence[PointSummary], names: Sequence[str]) -> Table:
    table = Table()
    table.add_column("", overflow="fold")
    for point in points:
        heading = "\n".join(f"{key}={value}" for key, value in point["settings"].items())
        table.add_column(heading, justify="right", overflow="fold")
    table.add_row("runs", *(_statuses(point) for point in points))
    for name in names:
        table.add_row(name, *(_score(name, point["scores"].get(name)) for point in points))
    return table


def _correlations(found: SweepSummary, names: Sequence[str]) -> Table:
    ranks = {**found["correlations"], "accuracy": found["with_accuracy"]}
    table = Table(title="Rank correlation over usable points, with", title_justify="left")
    table.add_column("", overflow="fold")
    for key in ranks:
        table.add_column(key, justify="right", overflow="fold")
    for name in names:
        values = [scores.get(name) for scores in ranks.values()]
        table.add_row(name, *("-" if value is None else f"{value:+.2f}" for value in values))
    return table


def _statuses(point: PointSummary) -> str:
    counts = Counter(row["status"] for row in point["runs"])
    text = ", ".join(f"{count} {status}" for status, count in counts.items())
    return text if point["usable"] else f"{text}\nnot usable"


def _score(name: str, spread: Spread | None) -> str:
    if spread is None:
        return "-"
    mean, deviation = spread["mean"], spread["deviation"]
    if name.endswith("accuracy"):
        return with_deviation(100 * mean, None if deviation is None else 100 * deviation)
    return f"{mean:.3g}" if deviation is None else f"{mean:.3g} ± {deviation:.2g}"


def print_probe(found: RateSearch) -> None:
    """The rates that were tried, and the highest that converges."""
    table = Table(title=f"{found['method']} on {found['dataset']}, {found['arch']}: short trainings")
    for heading in (found["setting"], "accuracy", "loss", "result"):
        table.add_column(heading, justify="right")
    for trial in found["trials"]:
        loss = "not finite" if trial["loss"] is None else f"{trial['loss']:.4g}"
        verdict = "converges" if trial["lr"] in found["converge"] else "does not converge"
        table.add_row(f"{trial['lr']:g}", percent(trial["accuracy"]), loss, verdict)
    out = console()
    out.print(table)
    out.print(f"Highest rate that converges: --set {found['setting']}={found['lr']:g}", highlight=False, markup=False)
