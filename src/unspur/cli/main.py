"""The command line: parse, call one function, print."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from unspur.cli.audit import audit
from unspur.cli.catalogs import archs, methods
from unspur.cli.compare import compare
from unspur.cli.data import data_app
from unspur.cli.doctor import doctor
from unspur.cli.explained import explained
from unspur.cli.papers import reproduce
from unspur.cli.repair import repair
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
from unspur.cli.ship import export, predict
from unspur.cli.sweep import analyze, probe, sweep
from unspur.core.memory import OUT_OF_MEMORY, is_out_of_memory
from unspur.errors import RunFailed, UnspurError
from unspur.version import __version__

if TYPE_CHECKING:
    from unspur.runs.result import Result

# Everything else is imported inside the commands: `unspur --help` must not wait for torch.

app = typer.Typer(invoke_without_command=True, rich_markup_mode="rich", pretty_exceptions_enable=False)
INTERRUPTED = 130  # the exit code of Ctrl-C, by which typer reports it
UNREAD = 1  # the exit code where nobody reads on, such as behind `| head`; typer's own
FIRST, MORE = "Start here", "More"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unspur {__version__}")
        raise typer.Exit


FIRST_STEPS = """\
unspur finds the shortcuts that image classifiers take, and trains classifiers that do not need them.

  unspur demo                            the whole story on digits that come with unspur; needs no data
  unspur audit PHOTOS                    does something give labels away that is not the object?
  unspur repair PHOTOS                   take the shortcut out of the model, or keep the model that you had
  unspur predict RUN IMAGES              labels for new images, or why there is none
  unspur export RUN --out DIR            one file for another program, with a model card

PHOTOS is a folder with a folder of images for each class. unspur --help lists all commands, unspur doctor shows
what this machine has, and unspur --install-completion teaches your shell to complete them."""


@app.callback()
def unspur(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find the shortcuts that image classifiers take, and train classifiers that do not need them.

    Start with `unspur demo`: it needs no data and writes a page that shows a classifier taking a shortcut.

    Your own images: `unspur audit PHOTOS`, then `unspur repair PHOTOS`.
    """
    if context.invoked_subcommand is None:
        typer.echo(FIRST_STEPS)
        suggest("unspur demo", why="a few minutes; then unspur audit on a folder of your own")


@app.command(rich_help_panel=FIRST)
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("demo"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train on the embedded digits, find the shortcut, repair it, and write OUT/audit.html and OUT/report.html.

    Example: unspur demo --out demo
    """
    from unspur.practice.demo import run_demo

    audited, page, results = run_demo(out, progress=True)
    if as_json:
        print_json({"audit": str(audited), "report": str(page), "results": results})
    else:
        from unspur.cli.show.results import print_result

        for result in results:
            print_result(result)
        say(f"Open {audited} in a browser to see the shortcut, and {page} to see where each classifier looks.")
        suggest("unspur audit PHOTOS", why="the same on your own folder of images")


@app.command(rich_help_panel=MORE)
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


@app.command(rich_help_panel=MORE)
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


@app.command(rich_help_panel=MORE)
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


app.command(rich_help_panel=FIRST)(audit)
app.command(rich_help_panel=FIRST)(repair)
app.command(rich_help_panel=FIRST)(predict)
app.command(rich_help_panel=FIRST)(export)
app.command(rich_help_panel=MORE)(methods)
app.add_typer(data_app, name="data", rich_help_panel=MORE)
for command in (compare, sweep, analyze, probe, reproduce, archs, doctor):
    app.command(rich_help_panel=MORE)(command)


def _explain(error: UnspurError) -> None:
    """The sentence, and below it the page that explains the matter; with ``--json`` a mistake is a document as well."""
    page = explained(error)
    complain(f"Error: {error}")
    if page:
        say(f"See {page}")
    if "--json" in sys.argv and not isinstance(error, RunFailed):  # a run that fails may have printed its own
        print_json({"error": str(error), "see": page})


@functools.cache
def _command() -> Callable[..., int | None]:
    """What typer makes of the app, once a process: all commands with all their options."""
    return typer.main.get_command(app)


def main() -> NoReturn:
    """Run the command line; a person's mistake is one sentence and never a traceback."""
    for name in ("stdout", "stderr"):  # a shell's `>&-` leaves none
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (it stays open to the end)
    try:
        code = _command()(standalone_mode=False) or 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would complain once more at its end
        code = UNREAD
    except typer.TyperException as error:  # such as an unknown option; without a command the help has been printed
        if error.format_message():
            complain(f"Error: {error.format_message()}")
        code = 2
    except UnspurError as error:
        _explain(error)
        code = 1 if isinstance(error, RunFailed) else 2
    except ModuleNotFoundError as error:  # an installation without its packages; commands name those of extras
        complain(f"Error: unspur needs the package {error.name}, which is not here; install it, or unspur again.")
        code = 1
    except OSError as error:  # such as a disk that is full or cannot be written
        where = f" ({error.filename})" if error.filename else ""
        complain(f"Error: {error.strerror or error}{where}; free some space, or name another folder.")
        code = 1
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        complain(f"Error: {OUT_OF_MEMORY}.")
        code = 1
    if code == INTERRUPTED:
        complain("Interrupted. Start the same command again to continue; `train` and `predict` need --resume for that.")
    sys.exit(code)
