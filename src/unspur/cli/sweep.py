"""The commands for learning rates and many runs: sweep, analyze, probe."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unspur.cli.shared import (
    Arch,
    DataDir,
    DataName,
    EngineName,
    Jobs,
    Json,
    Method,
    Quiet,
    RunFolder,
    Runs,
    Seed,
    Settings,
    given,
    print_json,
    say,
    suggest,
)

if TYPE_CHECKING:
    from unspur.runs.search import Search
    from unspur.runs.summary import Point, SweepSummary

Grid = Annotated[
    list[str],
    typer.Option(
        metavar="KEY=V1,V2", help="Values to try; several grids multiply. With --search also LOW..HIGH[:log]."
    ),
]
SweepSeeds = Annotated[str | None, typer.Option(help="Seeds, separated by commas. Default: 0,1,2, with --search 0.")]
SearchBy = Annotated[
    str | None, typer.Option(metavar="optuna", help="Propose points of the grid by what earlier ones scored.")
]
Trials = Annotated[int | None, typer.Option(help="Points that --search tries. Default: 40.")]
TimeLimit = Annotated[str | None, typer.Option(help="Time for --search, such as 20m or 1h. Default: any.")]
Rule = Annotated[
    str | None,
    typer.Option(
        help="Whose accuracy on validation data --search maximises: worst_class (default), mean or worst_group."
    ),
]
Analyze = Annotated[bool, typer.Option("--analyze", help="Also analyse every run (see `unspur analyze`).")]
Figure = Annotated[Path | None, typer.Option(help="Draw accuracy and the analysis's main figures into this SVG file.")]


def sweep(
    method: Method,
    dataset: DataName,
    grid: Grid,
    seeds: SweepSeeds = None,
    arch: Arch = None,
    settings: Settings = None,
    jobs: Jobs = None,
    engine: EngineName = "local",
    search: SearchBy = None,
    trials: Trials = None,
    budget: TimeLimit = None,
    choose: Rule = None,
    analyze: Analyze = False,
    figure: Figure = None,
    out: Runs = Path("runs"),
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Do many runs: every point of a grid, with every seed. Start it again to continue where it stopped.

    Example: unspur sweep erm parity --grid erm.lr=0.01,0.1,0.5 --seeds 0,1,2 --jobs 2

    Example: unspur sweep erm parity --search optuna --grid erm.lr=0.001..1:log --trials 40 --budget 1h
    """
    from unspur.data.files.fetch import DataFiles
    from unspur.papers.reproduce import parse_seeds
    from unspur.runs.search import Search
    from unspur.runs.sweep import plan

    limits = _limits(search, trials, budget, choose, analyzed=analyze or figure is not None)
    how: dict[str, Any] = {"jobs": jobs, "engine": engine, "data_dir": data_dir, "progress": True, "say": say}
    if search is None:
        numbers = parse_seeds(seeds or "0,1,2")
        points = plan(method, dataset, grid, numbers, arch, settings or [], DataFiles(data_dir))
        found = _swept(points, figure, out, how | {"analyze": analyze}, as_json)
    else:
        numbers = parse_seeds(seeds or "0")
        wanted = Search(method, dataset, tuple(grid), tuple(numbers), arch, tuple(settings or ()), **limits)
        found = _searched(wanted, out, how, as_json)
    _require_whole(found)
    if not as_json:
        suggest(f"unspur report {shlex.quote(str(out))}/{method}-{dataset}-*", why="one page about all runs")


def _limits(
    search: str | None, trials: int | None, budget: str | None, choose: str | None, *, analyzed: bool
) -> dict[str, Any]:
    """What of a search was given; options that only a search has, or that it has not, are an error."""
    from unspur.core.progress import seconds_of
    from unspur.errors import require, unknown

    every = {"trials": trials, "budget": budget, "choose": choose}
    limits: dict[str, Any] = {name: value for name, value in every.items() if value is not None}
    if search is None:
        require(not limits, f"--{next(iter(limits), '')} is for --search optuna; add that, or leave it out.")
    elif search != "optuna":
        raise unknown("search", search, ["optuna"])
    else:
        require(not analyzed, "--search takes neither --analyze nor --figure; sweep the best points again.")
    return limits | ({"budget": seconds_of(budget)} if budget is not None else {})


def _swept(points: Sequence[Point], figure: Path | None, out: Path, how: dict[str, Any], as_json: bool) -> SweepSummary:
    """Do the runs of a grid, print what they scored, and draw it."""
    from unspur.cli.show.sweeps import print_sweep
    from unspur.report.sweeps import check_figure, write_figure
    from unspur.runs.sweep import sweep as do_sweep

    if figure:
        check_figure([point.settings for point in points], figure)
    found = do_sweep(points, out, **how)
    print_json(found) if as_json else print_sweep(found)
    if figure and any(point["usable"] for point in found["points"]):
        write_figure(found, figure)
    elif figure:
        say(f"{figure} was not drawn: no point of the grid is usable.")
    return found


def _searched(wanted: Search, out: Path, how: dict[str, Any], as_json: bool) -> SweepSummary:
    """Do the runs that a search proposes, and print what they scored."""
    from unspur.cli.show.sweeps import print_search
    from unspur.runs.search import search as do_search

    found = do_search(wanted, out, **how)
    print_json(found) if as_json else print_search(found)
    return found


def _require_whole(found: SweepSummary) -> None:
    """Exit with 1 where a run failed, or could not be analysed."""
    from unspur.errors import RunFailed

    runs = [run for point in found["points"] for run in point["runs"]]
    if failed := [run["folder"] for run in runs if run["status"] == "failed"]:
        raise RunFailed(
            f"{len(failed)} of the sweep's runs failed, such as {failed[0]}; start it again to repeat them."
        )
    if unseen := [run["folder"] for run in runs if run["status"] == "done" and run.get("reason")]:
        raise RunFailed(f"{len(unseen)} of the sweep's runs could not be analysed, such as {unseen[0]}.")


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
    quiet: Quiet = False,
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
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the highest learning rate at which a method still converges, by short trainings on training data.

    Example: unspur probe masktune biased_mnist --set data.base=mini
    """
    from unspur.cli.show.sweeps import print_probe
    from unspur.data.files.fetch import DataFiles
    from unspur.runs.config import configure
    from unspur.runs.defaults import given_keys
    from unspur.runs.estimate import fitted_to
    from unspur.runs.rates import find_rate

    config, files = configure(method, dataset, arch, seed, settings or [], say), DataFiles(data_dir)
    config = fitted_to(files, config, given_keys(config.method, arch, settings or []))
    found = find_rate(config, files, progress=True)
    if as_json:
        print_json(found)
    else:
        print_probe(found)
        other = [setting for setting in settings or () if not setting.startswith(("erm.lr=", "training.lr="))]
        rate = given([*other, f"{found['setting']}={found['lr']:g}"], arch)
        suggest(f"unspur train {method} {dataset}{rate}", why="train at this rate")
