"""The commands for learning rates and many runs: sweep, analyze, probe."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from unspur.cli.shared import (
    Arch,
    DataDir,
    DataName,
    Json,
    Method,
    RunFolder,
    Seed,
    Settings,
    given,
    print_json,
    say,
    suggest,
)


def sweep(
    method: Method,
    dataset: DataName,
    grid: Annotated[list[str], typer.Option(metavar="KEY=V1,V2", help="Values to try; several grids multiply.")],
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "0,1,2",
    arch: Arch = None,
    settings: Settings = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time, one thread each. Default: one per core.")] = None,
    engine: Annotated[str, typer.Option(help="local (processes on this machine) or ray (a cluster).")] = "local",
    analyze: Annotated[bool, typer.Option("--analyze", help="Also analyse every run (see `unspur analyze`).")] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Draw accuracy and the analysis's main figures into this SVG file.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The parent of run folders.")] = Path("runs"),
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Do many runs: every point of a grid, with every seed. Start it again to continue where it stopped.

    Example: unspur sweep erm parity --grid erm.lr=0.01,0.1,0.5 --seeds 0,1,2 --jobs 2
    """
    from unspur.cli.show.sweeps import print_sweep
    from unspur.errors import RunFailed
    from unspur.papers.reproduce import parse_seeds
    from unspur.report.sweeps import check_figure, write_figure
    from unspur.runs.sweep import plan
    from unspur.runs.sweep import sweep as do_sweep

    points = plan(method, dataset, grid, parse_seeds(seeds), arch, settings or [])
    if figure:
        check_figure([point.settings for point in points], figure)
    found = do_sweep(points, out, jobs=jobs, engine=engine, analyze=analyze, data_dir=data_dir, progress=True, say=say)
    if as_json:
        print_json(found)
    else:
        print_sweep(found)
    if figure and any(point["usable"] for point in found["points"]):
        write_figure(found, figure)
    elif figure:
        say(f"{figure} was not drawn: no point of the grid is usable.")
    runs = [run for point in found["points"] for run in point["runs"]]
    if failed := [run["folder"] for run in runs if run["status"] == "failed"]:
        raise RunFailed(
            f"{len(failed)} of the sweep's runs failed, such as {failed[0]}; start it again to repeat them."
        )
    if unseen := [run["folder"] for run in runs if run["status"] == "done" and run.get("reason")]:
        raise RunFailed(f"{len(unseen)} of the sweep's runs could not be analysed, such as {unseen[0]}.")
    if not as_json:
        suggest(f"unspur report {shlex.quote(str(out))}/{method}-{dataset}-*", why="one page about all runs")


def analyze(
    run: RunFolder,
    test: Annotated[str | None, typer.Option(help="A test set. Default: the unbiased one, or the first.")] = None,
    foreground: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where the objects are: a .npy file of masks, or deeplabv3.")
    ] = None,
    around: Annotated[
        bool, typer.Option("--around", help="Also measure the surroundings of the solution (slow).")
    ] = False,
    samples: Annotated[int, typer.Option(help="Test inputs to use (pruned nodes are scored on more).")] = 1000,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Compute every metric and attribution statistic of a stored run, and keep them in its analysis.json.

    Example: unspur analyze runs/erm-double_mnist-0123456789ab
    """
    from unspur.cli.show.analysis import print_analysis
    from unspur.core.progress import ProgressBar
    from unspur.runs.analyze import analyze as analyze_run

    with ProgressBar("analyze") as bar:
        found = analyze_run(
            run,
            data_dir=data_dir,
            test=test,
            foreground=foreground,
            around=around,
            samples=samples,
            progress=bar,
        )
    if as_json:
        print_json(found)
    else:
        print_analysis(found)
        suggest("unspur report", run, why="the same figures on a page")


def probe(
    method: Method,
    dataset: DataName,
    arch: Arch = None,
    seed: Seed = 0,
    settings: Settings = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Find the highest learning rate at which a method still converges, by short trainings on training data.

    Example: unspur probe masktune biased_mnist --set data.base=mini
    """
    from unspur.cli.show.sweeps import print_probe
    from unspur.runs.config import configure
    from unspur.runs.rates import find_rate

    config = configure(method, dataset, arch, seed, settings or [], say)
    found = find_rate(config, data_dir=data_dir, progress=True)
    if as_json:
        print_json(found)
    else:
        print_probe(found)
        other = [setting for setting in settings or () if not setting.startswith(("erm.lr=", "training.lr="))]
        rate = given([*other, f"{found['setting']}={found['lr']:g}"], arch)
        suggest(f"unspur train {method} {dataset}{rate}", why="train at this rate")
