"""The command that compares methods."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from unspur.cli.shared import (
    Arch,
    DataDir,
    EngineName,
    Jobs,
    Json,
    Quiet,
    Runs,
    Seeds,
    Settings,
    complain,
    print_json,
    say,
    suggest,
)
from unspur.cli.shared import given as repeated


def compare(
    methods: Annotated[str, typer.Argument(metavar="METHODS", help="Methods, separated by commas, or all.")],
    datasets: Annotated[str, typer.Argument(metavar="DATASETS", help="Data sets, separated by commas.")],
    seeds: Seeds = "0,1,2",
    rates: Annotated[
        str, typer.Option(help="Candidates to choose from: each method's own learning rates times these.")
    ] = "1",
    arch: Arch = None,
    settings: Settings = None,
    jobs: Jobs = None,
    engine: EngineName = "local",
    page: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("compare.html"),
    keep: Annotated[Path | None, typer.Option(help="A JSON file that always has what is known by then.")] = None,
    out: Runs = Path("runs"),
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare methods on data sets: same candidates, same rules of choice, ranks with intervals.

    Plain training is always among them. --set reaches every method and data set that has the setting; with a method's
    name and a colon before it, that method alone. Start it again to continue where it stopped.

    Example: unspur compare groupdro,jtt,irm colored_mnist --set data.base=mini --set jtt:up=50 --seeds 0,1,2
    """
    from unspur.cli.show.comparisons import print_comparison
    from unspur.core.files import require_writable
    from unspur.errors import RunFailed
    from unspur.papers.reproduce import parse_seeds
    from unspur.report.compare_page import write_comparison
    from unspur.runs.compare import compare as do_compare
    from unspur.runs.entries import enter
    from unspur.runs.many import Many

    for file in (page, keep) if keep else (page,):
        require_writable(file)
    given, sets = settings or [], _names(datasets)
    more: dict[str, Any] = {"arch": arch, "settings": given, "rates": _factors(rates), "data_dir": data_dir}
    entries = enter(_names(methods), sets, parse_seeds(seeds), **more)
    command = f"unspur compare {methods} {datasets} --seeds {seeds} --rates {rates}{repeated(given, arch)}"
    many = Many(out, jobs, engine, data_dir)
    found = do_compare(entries, many, command=command, keep=keep, progress=True, say=say)
    for failure in write_comparison(found, page):
        complain(f"Warning: the page lacks the part '{failure.section}': {failure.reason}")
    if as_json:
        print_json(found)
    else:
        print_comparison(found)
        say(f"Wrote {page}. Open it in a browser.")
    if found["done"] < found["of"]:
        raise RunFailed(f"{found['of'] - found['done']} of {found['of']} runs failed; start it again to repeat them.")
    if not as_json:
        best = next(iter(found["ranks"]["none"] or found["ranks"]["groups"]), "*")
        suggest(f"unspur report {shlex.quote(str(out))}/{best}-{sets[0]}-*", why="where the best one's models look")


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _factors(text: str) -> list[float]:
    from unspur.errors import UnspurError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UnspurError(f"--rates are numbers separated by commas, such as 0.3,1,3, but got '{text}'.") from None
