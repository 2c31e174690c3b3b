"""The command line: parse, call one function, print."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from unspur.cli.audit import audit
from unspur.cli.catalogs import archs, methods
from unspur.cli.compare import compare
from unspur.cli.data import data_app
from unspur.cli.doctor import doctor
from unspur.cli.explained import explained
from unspur.cli.papers import reproduce
from unspur.cli.repair import repair
from unspur.cli.runs import evaluate, report, train
from unspur.cli.shared import Json, Quiet, complain, print_json, say, suggest
from unspur.cli.ship import export, predict
from unspur.cli.sweep import analyze, probe, sweep
from unspur.core.memory import OUT_OF_MEMORY, is_out_of_memory
from unspur.errors import RunFailed, UnspurError
from unspur.version import __version__

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


for early in (audit, repair, predict, export):
    app.command(rich_help_panel=FIRST)(early)
for later in (train, evaluate, report, methods, compare, sweep, analyze, probe, reproduce, archs, doctor):
    app.command(rich_help_panel=MORE)(later)
app.add_typer(data_app, name="data", rich_help_panel=MORE)


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
