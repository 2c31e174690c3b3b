"""Results and lists as tables for people."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from unspur.core.options import options
from unspur.evaluation.analysis import figures

MOST_GROUPS = 40  # lines of a table that are still read

COLUMNS = {
    "accuracy": "accuracy",
    "worst_group_accuracy": "worst group",
    "aligned_accuracy": "aligned",
    "conflicting_accuracy": "conflicting",
}


def print_result(result: Mapping[str, Any]) -> None:
    """A table of a run's test sets, its earlier stages first."""
    if result["status"] != "done":
        _console().print(f"{_title(result)} {result['status']}: {result['reason']}", markup=False)
        return
    table = Table(title=_title(result), title_justify="left")
    table.add_column("stage")
    table.add_column("test set")
    for heading in COLUMNS.values():
        table.add_column(heading, justify="right")
    table.add_column("n", justify="right")
    for stage, tests in _stages(result):
        for name, scores in tests.items():
            cells = [percent(scores[key]) for key in COLUMNS]
            table.add_row(stage, name, *cells, f"{scores['n']:,}")
    _console().print(table)
    for warning in result.get("warnings", ()):
        _console().print(f"Warning: {warning}", markup=False)


def print_coverage(selective: Mapping[str, Any], coverage: float) -> None:
    """What abstaining brings on each test set, and on each of its groups."""
    table = Table(title=f"Answering {percent(coverage)}, thresholds from validation data", title_justify="left")
    for heading in ("test set", "mode"):
        table.add_column(heading)
    for heading in ("coverage", "error", "AURC", "worst group's error", "least group coverage"):
        table.add_column(heading, justify="right")
    for test, modes in selective.items():
        for mode, block in modes.items():
            errors = [group["error"] for group in block["groups"] if group["error"] is not None]
            worst = percent(max(errors)) if errors else "-"
            least = percent(min(group["coverage"] for group in block["groups"]))
            table.add_row(
                test, mode, percent(block["coverage"]), percent(block["error"]), f"{block['aurc']:.4f}", worst, least
            )
    _console().print(table)


def print_sweep(found: Mapping[str, Any]) -> None:
    """A sweep: a line for each score, a column for each point of the grid, and then each score's rank correlations."""
    points, console = found["points"], _console()
    names = list(dict.fromkeys(name for point in points for name in point["scores"]))
    console.print(f"{found['method']} on {found['dataset']}, {found['arch']}", style="italic", highlight=False)
    for table in _fitting(console, points, names):
        console.print(table)
    if names:
        console.print(_correlations(found, names))
    if found["usable_range"]:
        (key,), (low, high) = points[0]["settings"], found["usable_range"]
        console.print(f"Usable {key}: from {low:g} to {high:g}.", highlight=False, markup=False)


def _fitting(console: Console, points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[Table]:
    """The points side by side in one table, or in as many as it takes for each to fit the console."""
    table = _points(points, names)
    half = len(points) // 2
    if half and console.measure(table, options=console.options.update(width=10_000)).maximum > console.width:
        yield from _fitting(console, points[:half], names)
        yield from _fitting(console, points[half:], names)
    else:
        yield table


def _points(points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    table = Table()
    table.add_column("", overflow="fold")
    for point in points:
        heading = "\n".join(f"{key}={value}" for key, value in point["settings"].items())
        table.add_column(heading, justify="right", overflow="fold")
    table.add_row("runs", *(_statuses(point) for point in points))
    for name in names:
        table.add_row(name, *(_score(name, point["scores"].get(name)) for point in points))
    return table


def _correlations(found: Mapping[str, Any], names: Sequence[str]) -> Table:
    ranks = {**found["correlations"], "accuracy": found["with_accuracy"]}
    table = Table(title="Rank correlation over usable points, with", title_justify="left")
    table.add_column("", overflow="fold")
    for key in ranks:
        table.add_column(key, justify="right", overflow="fold")
    for name in names:
        values = [scores.get(name) for scores in ranks.values()]
        table.add_row(name, *("-" if value is None else f"{value:+.2f}" for value in values))
    return table


def print_probe(found: Mapping[str, Any]) -> None:
    """The rates that were tried, and the highest that converges."""
    table = Table(title=f"{found['method']} on {found['dataset']}, {found['arch']}: short trainings")
    for heading in ("erm.lr", "accuracy", "loss", ""):
        table.add_column(heading, justify="right")
    for trial in found["trials"]:
        loss = "not finite" if trial["loss"] is None else f"{trial['loss']:.4g}"
        verdict = "converges" if trial["lr"] in found["converge"] else "does not"
        table.add_row(f"{trial['lr']:g}", percent(trial["accuracy"]), loss, verdict)
    console = _console()
    console.print(table)
    console.print(f"The highest rate that converges: --set erm.lr={found['lr']:g}", highlight=False, markup=False)


def _statuses(point: Mapping[str, Any]) -> str:
    counts = Counter(row["status"] for row in point["runs"])
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    return told if point["usable"] else f"{told}\nnot usable"


def print_analysis(found: Mapping[str, Any]) -> None:
    """An analysis: its figures, the pruning curves, and what could not be computed."""
    table = Table(title=f"On {found['test']}, activations of {found['samples']:,} inputs", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures(found).items():
        table.add_row(name, f"{value:.4g}")
    console = _console()
    console.print(table)
    curves = {unit: curve for unit, curve in found["prunability"].items() if curve}
    if curves:
        table = Table(title="Accuracy that is left after pruning a share", title_justify="left")
        table.add_column("of")
        for kappa in next(iter(curves.values()))["kappas"]:
            table.add_column(f"{kappa:g}", justify="right")
        for unit, curve in curves.items():
            table.add_row(f"{unit}s", *(f"{share:.2f}" for share in curve["retained"]))
        console.print(table)
    for warning in found["warnings"]:
        console.print(f"Warning: {warning}", highlight=False, markup=False)
    for what, reason in found["unknown"].items():
        console.print(f"Not known: {what}. {reason}", highlight=False, markup=False)


def _score(name: str, spread: Mapping[str, Any] | None) -> str:
    if spread is None:
        return "-"
    mean, deviation = spread["mean"], spread["deviation"]
    if name.endswith("accuracy"):
        return _with_deviation(100 * mean, None if deviation is None else 100 * deviation)
    return f"{mean:.3g}" if deviation is None else f"{mean:.3g} ± {deviation:.2g}"


def print_tables(listed: Sequence[Mapping[str, str]]) -> None:
    """Every table that can be reproduced."""
    for entry in listed:
        _console().print(f"[bold]{entry['table']}[/bold]  {entry['caption']}", highlight=False)


def print_table(outcome: Mapping[str, Any]) -> None:
    """A reproduced table: ours beside theirs, cell by cell, and what was skipped."""
    quick = " (quick settings: not comparable)" if outcome["quick"] else ""
    table = Table(title=f"{outcome['table']}: {outcome['caption']}{quick}", title_justify="left")
    for heading in ("", "column"):
        table.add_column(heading)
    for heading in ("published", "ours", "seeds"):
        table.add_column(heading, justify="right")
    for cell in outcome["cells"]:
        digits = 3 if cell["published"] is not None and abs(cell["published"]) < 2 else 2  # shares not in per cent
        theirs = _with_deviation(cell["published"], cell["published_deviation"], digits)
        ours = _with_deviation(cell["ours"], cell["ours_deviation"], digits) if cell["values"] else cell["why_none"]
        seeds = str(len(cell["values"])) if cell["values"] else ""
        table.add_row(cell["row"], cell["column"], theirs, "" if ours == "quoted" else ours, seeds)
    console = _console()
    console.print(table)
    if outcome["differs"]:
        console.print(f"Ours differs: {outcome['differs']}", highlight=False)
    if outcome["settings"]:
        console.print(f"Besides, here: {', '.join(outcome['settings'])}.", highlight=False, markup=False)
    for setup, reason in outcome["skipped"].items():
        console.print(f"Skipped {setup}: {reason}", highlight=False, markup=False)


def _with_deviation(value: float | None, deviation: float | None, digits: int = 2) -> str:
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if deviation is None else f"{value:.{digits}f} ± {deviation:.{digits}f}"


def percent(share: float | None) -> str:
    """A share as a percentage; what is unknown as a dash.

    >>> percent(0.98765), percent(None)
    ('98.77 %', '-')
    """
    return "-" if share is None else f"{100 * share:.2f} %"


def print_specs(specs: Mapping[str, Any]) -> None:
    """Names, one line each, with their options and defaults."""
    console = _console()
    for spec in describe_specs(specs):
        console.print(f"[bold]{spec['name']}[/bold]  {spec['description']}", highlight=False)
        for option in spec["options"]:
            comment = f"  [dim]{option['comment']}[/dim]" if option["comment"] else ""
            console.print(f"    {option['key']}={option['default']}{comment}", highlight=False)


def print_info(info: Mapping[str, Any]) -> None:
    """What a data set is, whether it is here and whole, and how many samples each group has."""
    console = _console()
    console.print(f"[bold]{info['name']}[/bold]  {info['description']}", highlight=False)
    lines = {"citation": info["citation"], "licence": info["licence"], "where to get it": info["get"]}
    lines["options"] = ", ".join(f"{key}={value}" for key, value in info["options"].items())
    for part in info["files"]:
        lines[part["title"]] = f"whole, in {part['folder']}" if part["state"] == "whole" else part["reason"]
    lines |= {"problem": info["problem"]} if info["problem"] else {}
    lines |= {"note": info["note"]} if info.get("note") else {}
    for heading, text in lines.items():
        console.print(f"  {heading}: {text}", highlight=False, markup=False)
    if info["splits"] is not None:
        _print_groups(info["splits"])
    _print_comparison(info)


def _print_groups(splits: Mapping[str, Any]) -> None:
    """A table with a row for each group and a column for each split."""
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    for split, content in splits.items():
        for group in content["groups"]:
            rows.setdefault((group["class"], *group["attributes"].values()), {})[split] = group["n"]
    table = Table(show_footer=True)
    attributes: Mapping[str, str] = next(
        (group["attributes"] for content in splits.values() for group in content["groups"]), {}
    )
    for heading, footer in zip(("class", *attributes), ("all", *("" for _ in attributes)), strict=True):
        table.add_column(heading, footer)
    for split, content in splits.items():
        table.add_column(_short(split), f"{content['n']:,}", justify="right")
    for names, counts in itertools.islice(rows.items(), MOST_GROUPS):
        table.add_row(*names, *(f"{counts.get(split, 0):,}" for split in splits))
    console = _console()
    console.print(table)
    if len(rows) > MOST_GROUPS:
        console.print(f"and {len(rows) - MOST_GROUPS:,} more groups, which --json lists", highlight=False)


def _short(split: str) -> str:
    """What a split is called for people: the only test set is just "test"."""
    return "test" if split == "test test" else split


def _print_comparison(info: Mapping[str, Any]) -> None:
    """What the publishers counted differently, or that there is nothing of the kind."""
    console = _console()
    if info["verified"]:
        console.print(f"All {len(info['counts'])} published counts agree.", highlight=False)
    for count in info["counts"]:
        if count["published"] != count["found"]:
            groups = " and ".join(", ".join(names) for names in count["groups"] if names) or "all"
            here = f"{_short(count['split'])}, {groups}: {count['found']:,} here"
            console.print(f"{here}, but {count['published']:,} were published.", highlight=False, markup=False)


def describe_specs(specs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same as plain values for ``--json``."""
    return [
        {
            "name": name,
            "description": (type(spec).__doc__ or "").splitlines()[0],
            "options": [option._asdict() for option in options(spec)],
        }
        for name, spec in specs.items()
    ]


def _stages(result: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for stage, block in result.get("stages", {}).items():
        yield stage, block["tests"]
    yield "result", result["tests"]


def _title(result: Mapping[str, Any]) -> str:
    return f"{result['method']} on {result['dataset']}, {result['arch']}, seed {result['seed']}"


def _console() -> Console:
    # Piped output is as wide as tables with many columns need.
    return Console() if sys.stdout.isatty() else Console(width=160)
