"""The commands for learning rates and many runs: sweep, analyze, probe."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from unspur.runs.search import Search


def sweep(
    method: Method,
    dataset: DataName,
    grid: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=V1,V2", help="Values to try; several grids multiply. With --search also LOW..HIGH[:log]."
        ),
    ],
    seeds: Annotated[
        str | None, typer.Option(help="Seeds, separated by commas. Default: 0,1,2, with --search 0.")
    ] = None,
    arch: Arch = None,
    settings: Settings = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time, one thread each. Default: one per core.")] = None,
    engine: Annotated[str, typer.Option(help="local (processes on this machine) or ray (a cluster).")] = "local",
    search: Annotated[
        str | None, typer.Option(metavar="optuna", help="Propose points of the grid by what earlier ones scored.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Points that --search tries.")] = 40,
    budget: Annotated[str | None, typer.Option(help="Time for --search, such as 20m or 1h. Default: any.")] = None,
    choose: Annotated[
        str,
        typer.Option(help="Whose accuracy on validation data --search maximises: worst_class, mean or worst_group."),
    ] = "worst_class",
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

    Example: unspur sweep erm parity --search optuna --grid erm.lr=0.001..1:log --trials 40 --budget 1h
    """
    from unspur.cli.show.sweeps import print_search, print_sweep
    from unspur.data.files.fetch import DataFiles
    from unspur.errors import RunFailed, require
    from unspur.papers.reproduce import parse_seeds
    from unspur.report.sweeps import check_figure, write_figure
    from unspur.runs.search import search as do_search
    from unspur.runs.summary import SweepSummary
    from unspur.runs.sweep import plan
    from unspur.runs.sweep import sweep as do_sweep

    if search is not None:
        wanted = _search(search, method, dataset, grid, seeds, arch, settings, trials, budget, choose)
        require(not (analyze or figure), "--search takes neither --analyze nor --figure; sweep the best points again.")
        searched = do_search(wanted, out, jobs=jobs, engine=engine, data_dir=data_dir, progress=True, say=say)
        found: SweepSummary = searched
    else:
        chosen, files = parse_seeds(seeds or "0,1,2"), DataFiles(data_dir)
        points = plan(method, dataset, grid, chosen, arch, settings or [], files)
        if figure:
            check_figure([point.settings for point in points], figure)
        more: dict[str, Any] = {"analyze": analyze, "data_dir": data_dir, "progress": True, "say": say}
        found = do_sweep(points, out, jobs=jobs, engine=engine, **more)
    if as_json:
        print_json(found)
    elif search is not None:
        print_search(searched)
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


def _search(
    by: str,
    method: str,
    dataset: str,
    grid: list[str],
    seeds: str | None,
    arch: str | None,
    settings: list[str] | None,
    trials: int,
    budget: str | None,
    choose: str,
) -> Search:
    from unspur.errors import unknown
    from unspur.papers.reproduce import parse_seeds
    from unspur.runs.search import Search
    from unspur.runs.search_space import seconds_of

    if by != "optuna":
        raise unknown("search", by, ["optuna"])
    return Search(
        method,
        dataset,
        tuple(grid),
        tuple(parse_seeds(seeds or "0")),
        arch,
        tuple(settings or ()),
        trials,
        seconds_of(budget) if budget else None,
        choose,  # type: ignore[arg-type]  # it is checked there
    )


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
