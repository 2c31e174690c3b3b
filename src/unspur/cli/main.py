"""The command line: parse, call one function, print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from unspur.cli.data import data_app
from unspur.cli.shared import DataDir, DataName, Json, Method, RunFolder, Settings, print_json, say, show_specs
from unspur.cli.sweep import analyze, probe, sweep
from unspur.errors import RunFailed, UnspurError
from unspur.version import __version__

if TYPE_CHECKING:
    from unspur.runs.result import Result

# Everything else is imported inside the commands: `unspur --help` must not wait for torch.

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
INTERRUPTED = 130  # the exit code of Ctrl-C, by which typer reports it
app.add_typer(data_app, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unspur {__version__}")
        raise typer.Exit


@app.callback()
def unspur(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find the shortcuts that image classifiers take, and train classifiers that do not need them.

    Start with `unspur demo`: it needs no data and writes a page that shows a classifier taking a shortcut.
    """


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("demo"), as_json: Json = False
) -> None:
    """Train on the embedded digits, show the shortcut that is taken, and write OUT/report.html.

    Example: unspur demo --out demo
    """
    from unspur.practice.demo import run_demo

    page, results = run_demo(out, progress=True)
    if as_json:
        print_json({"report": str(page), "results": results})
    else:
        from unspur.cli.console import print_result

        for result in results:
            print_result(result)
        typer.echo(f"\nOpen {page} in a browser to see where the classifier looks.")


@app.command()
def train(
    method: Method,
    dataset: DataName,
    arch: Annotated[str | None, typer.Option(help="An architecture, as listed by `unspur archs`.")] = None,
    seed: Annotated[int, typer.Option(help="Fixes everything random.")] = 0,
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="The parent of run folders.")] = Path("runs"),
    devices: Annotated[int, typer.Option(help="Processes that train together, one a device.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run.")] = False,
    follow: Annotated[
        int | None,
        typer.Option(metavar="N", help="See where attributions lie, and what neuron N uses and when it changes."),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Do one run and store it in a folder of its own.

    Example: unspur train erm biased_mnist --set data.base=mini --set erm.epochs=2 --seed 1
    """
    from unspur.runs.config import configure
    from unspur.runs.experiment import run

    config = configure(method, dataset, arch, seed, settings or [], say)
    more: dict[str, Any] = {"devices": devices, "resume": resume, "follow": follow}
    result = run(config, out, data_dir=data_dir, progress=True, say=say, **more)
    _print_outcome(result, as_json)
    if result["status"] == "diverged":
        raise typer.Exit(1)


@app.command()
def evaluate(
    run: RunFolder,
    dataset: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="Another set than the run's own.")] = None,
    coverage: Annotated[float | None, typer.Option(help="Abstain: answer this share of the images.")] = None,
    settings: Settings = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Score a stored run on its own test sets or on those of another data set, and see what abstaining would bring.

    Example: unspur evaluate runs/masktune-biased_mnist-0123456789ab --coverage 0.9
    """
    from unspur.cli.console import print_coverage
    from unspur.runs.scoring import score_run

    result = score_run(run, dataset, settings or [], data_dir, coverage)
    _print_outcome(result, as_json)
    if coverage is not None and not as_json:
        print_coverage(result["selective"], coverage)


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(metavar="PAPER/TABLE", help="Such as masktune/table6; `list` names all.")],
    quick: Annotated[bool, typer.Option("--quick", help="Small settings, to see that everything works.")] = False,
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "0,1,2",
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Run only this method, data set or row; read what is done.")
    ] = None,
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="Where measured tables are stored.")] = Path("results"),
    runs: Annotated[Path, typer.Option(help="The parent of run folders.")] = Path("runs"),
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Reproduce a published table: ours beside theirs. What the data at hand do not allow is skipped and named.

    Example: unspur reproduce masktune/table6 --quick --seeds 0
    """
    from unspur.cli.console import print_table, print_tables
    from unspur.papers.reproduce import TABLES, parse_seeds, table_named
    from unspur.papers.reproduce import reproduce as reproduce_table

    if table == "list":
        listed = [{"table": key, "caption": entry.caption} for key, entry in TABLES.items()]
        return print_json(listed) if as_json else print_tables(listed)
    outcome = reproduce_table(
        table_named(table),
        parse_seeds(seeds),
        quick=quick,
        only=only or [],
        settings=settings or [],
        results=out,
        runs=runs,
        data_dir=data_dir,
        say=say,
    )
    if as_json:
        print_json(outcome)
    else:
        print_table(outcome)
    if failed := outcome["failed"]:
        raise RunFailed(f"{len(failed)} of the table's settings failed, such as {failed[0]}; start it again.")


app.command()(sweep)
app.command()(analyze)
app.command()(probe)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="One or more run folders.")],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML page about stored runs.

    Example: unspur report runs/erm-biased_mnist-* --out report.html
    """
    from unspur.report.runs_page import write_report

    written = write_report(runs, out, data_dir)
    if as_json:
        print_json(written)
        return
    for folder, warnings in written["warnings"].items():
        for warning in warnings:
            say(f"Warning: {folder}: {warning}")
    for section, reason in written["failed"].items():
        say(f"Warning: the page lacks the part '{section}': {reason}")
    typer.echo(f"Wrote {out}.")


@app.command()
def methods(as_json: Json = False) -> None:
    """List the methods with their hyperparameters and defaults."""
    from unspur.methods.catalog import METHODS

    show_specs({name: method() for name, method in METHODS.items()}, as_json)


@app.command()
def archs(as_json: Json = False) -> None:
    """List the architectures with their options and defaults."""
    from unspur.models.catalog import ARCHS

    show_specs({name: arch() for name, arch in ARCHS.items()}, as_json)


def _print_outcome(result: Result, as_json: bool) -> None:
    from unspur.cli.console import print_result

    if as_json:
        print_json(result)
    else:
        print_result(result)


def main() -> NoReturn:
    """Run the command line; a person's mistake is one sentence and never a traceback."""
    try:
        code = app(standalone_mode=False) or 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except typer.TyperException as error:  # such as an unknown option; without a command the help has been printed
        if error.format_message():
            say(f"Error: {error.format_message()}")
        code = 2
    except RunFailed as error:
        say(f"Error: {error}")
        code = 1
    except UnspurError as error:
        say(f"Error: {error}")
        code = 2
    except OSError as error:  # such as a disk that is full or cannot be written
        where = f" ({error.filename})" if error.filename else ""
        say(f"Error: {error.strerror or error}{where}; free what is short, or name another folder.")
        code = 1
    if code == INTERRUPTED:
        say("Interrupted. The same command goes on from here; `unspur train` needs --resume for that.")
    sys.exit(code)
