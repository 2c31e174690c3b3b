"""`unspur train`, `evaluate` and `report`: a run is made, scored, and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unspur.cli.shared import (
    Arch,
    DataDir,
    DataName,
    DataSettings,
    Json,
    Method,
    Quiet,
    RunFolder,
    Runs,
    Seed,
    Settings,
    complain,
    given,
    print_json,
    say,
    suggest,
)

if TYPE_CHECKING:
    from unspur.runs.result import Result


def train(
    method: Method,
    dataset: DataName,
    arch: Arch = None,
    seed: Seed = 0,
    settings: Settings = None,
    out: Runs = Path("runs"),
    devices: Annotated[int, typer.Option(help="Processes that train together, one per device.")] = 1,
    nodes: Annotated[int, typer.Option(help="Machines that train together, each under torchrun.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an unfinished run.")] = False,
    follow: Annotated[
        int | None,
        typer.Option(metavar="N", help="After each epoch, note where attributions lie and what neuron N uses."),
    ] = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train one model and store the run in a folder of its own.

    Example: unspur train erm biased_mnist --set data.base=mini --set erm.epochs=2 --seed 1
    """
    from unspur.data.files.fetch import DataFiles
    from unspur.runs.config import configure
    from unspur.runs.defaults import given_keys
    from unspur.runs.estimate import prepared
    from unspur.runs.experiment import run
    from unspur.runs.folder import Run

    config = configure(method, dataset, arch, seed, settings or [], say)
    files = DataFiles(data_dir)
    config = prepared(config, given_keys(config.method, arch, settings or []), files, say)
    more: dict[str, Any] = {"devices": devices, "nodes": nodes, "resume": resume, "follow": follow}
    result = run(config, out, data_dir=data_dir, files=files, progress=True, say=say, **more)
    if not result:  # of several processes one speaks
        return
    _print_outcome(result, as_json)
    diverged = result["status"] == "diverged"
    if diverged and not as_json:
        other = [setting for setting in settings or () if not setting.startswith(("erm.lr=", "training.lr="))]
        suggest(f"unspur probe {method} {dataset}{given(other, arch)}", why="the highest learning rate that converges")
    elif not as_json:
        suggest("unspur report", Run.create(out, config).folder, why="a page that shows where the model looks")
    if diverged:
        raise typer.Exit(1)


def evaluate(
    run: RunFolder,
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATASET|FOLDER|CSV]",
            help="Another data set, or a folder or table of images, all of which are scored. Default: the run's own.",
        ),
    ] = None,
    coverage: Annotated[
        float | None, typer.Option(help="Answer this share of the images, and abstain on the rest.")
    ] = None,
    settings: DataSettings = None,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Score a stored run on its own test sets, on another data set, or on every image of a folder or table.

    Images are read at the run's own size, and their classes are matched by name. With --coverage, let the run abstain.

    Example: unspur evaluate runs/masktune-biased_mnist-0123456789ab --coverage 0.9

    Example: unspur evaluate runs/erm-folder-0123456789ab new-photos
    """
    from unspur.cli.show.results import print_coverage
    from unspur.core.progress import ProgressBar
    from unspur.runs.scoring import score_run

    with ProgressBar("evaluate") as bar:
        result = score_run(run, dataset, settings or [], data_dir, coverage, bar)
    _print_outcome(result, as_json)
    if as_json:
        return
    if coverage is not None:
        print_coverage(result["selective"], coverage)
        suggest("unspur report", run, why="a page that shows where the model looks")
    else:
        suggest("unspur evaluate", run, "--coverage 0.9", why="what abstaining on one image in ten would bring")


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="One or more run folders.")],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML page about stored runs.

    Example: unspur report runs/erm-biased_mnist-* --out report.html
    """
    from unspur.core.progress import ProgressBar
    from unspur.report.runs_page import write_report

    with ProgressBar("report") as bar:
        written = write_report(runs, out, data_dir, bar)
    for folder, warnings in written["warnings"].items():
        for warning in warnings:
            complain(f"Warning: {folder}: {warning}")
    for section, reason in written["failed"].items():
        complain(f"Warning: the page lacks the part '{section}': {reason}")
    if as_json:
        print_json(written)
    else:
        say(f"Wrote {out}. Open it in a browser.")
        suggest("unspur export", runs[0], "--out exported", why="one file for another program")


def _print_outcome(result: Result, as_json: bool) -> None:
    from unspur.cli.show.results import print_result

    if as_json:
        print_json(result)
    else:
        print_result(result)
