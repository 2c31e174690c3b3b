"""What all commands share: options that mean the same everywhere, and how to print."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from unspur.core.quiet import QUIET, is_quiet


def _hush(quiet: bool) -> None:
    if quiet:
        os.environ[QUIET] = "1"


def _names(module: str, catalog: str) -> Callable[[str], list[str]]:
    """What a shell completes: the names of a catalogue, read from the source without importing torch."""

    def beginning_with(incomplete: str) -> list[str]:
        from unspur.core.outline import catalogue

        return [name for name in catalogue(module, catalog) if name.startswith(incomplete)]

    return beginning_with


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        envvar=QUIET,
        callback=_hush,
        help="Print results, warnings and errors, but no progress and no hints.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="UNSPUR_DATA", help="Where data sets are stored. Default: the user's cache."),
]
DataName = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A data set, as listed by `unspur data list`.",
        autocompletion=_names("unspur.data.catalog", "DATASETS"),
    ),
]
Method = Annotated[
    str,
    typer.Argument(
        help="A method, as listed by `unspur methods`.", autocompletion=_names("unspur.methods.catalog", "METHODS")
    ),
]
Arch = Annotated[
    str | None,
    typer.Option(
        help="An architecture, as listed by `unspur archs`. Default: one that suits the data set.",
        autocompletion=_names("unspur.models.catalog", "ARCHS"),
    ),
]
Seed = Annotated[int, typer.Option(help="Fixes everything random.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Runs = Annotated[Path, typer.Option(help="The parent of run folders.")]
Seeds = Annotated[str, typer.Option(help="Seeds, separated by commas.")]
Jobs = Annotated[int | None, typer.Option(help="Runs at a time, one thread each. Default: one per core.")]
EngineName = Annotated[str, typer.Option(help="local (processes on this machine) or ray (a cluster).")]
Where = Annotated[str, typer.Option(help="local (this machine) or ray (a cluster).")]
Workers = Annotated[int | None, typer.Option(help="Workers of --engine ray. Default: one per processor.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change any setting, such as erm.lr=0.1 or data.conflict=0.005."),
]
DataSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting of the data, such as data.base=mini or data.label=species."
    ),
]


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    typer.echo(json.dumps(value, indent=1))


def say(sentence: str) -> None:
    """A sentence for a person, on stderr and on one line; not with ``--quiet``."""
    if not is_quiet():
        complain(sentence)


def complain(sentence: str) -> None:
    """An error or a warning, which ``--quiet`` does not silence."""
    from unspur.cli.show.console import plain

    typer.echo(plain(sentence, keep=""), err=True)


def given(settings: Sequence[str] | None, arch: str | None = None) -> str:
    """What the user set, to be repeated in a command that comes next.

    >>> given(["data.base=mini"], "fcn")
    ' --arch fcn --set data.base=mini'
    """
    words = [f"--arch {arch}"] if arch else []
    return "".join(f" {word}" for word in (*words, *(f"--set {shlex.quote(setting)}" for setting in settings or ())))


def suggest(*command: str | Path, why: str) -> None:
    """The command that usually comes next, ready to paste, on stderr; not for ``--json``."""
    words = " ".join(word if isinstance(word, str) else shlex.quote(str(word)) for word in command)
    say(f"Next: {words}  # {why}")
