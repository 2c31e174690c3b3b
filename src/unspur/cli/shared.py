"""What all commands share: options that mean the same everywhere, and how to print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="UNSPUR_DATA", help="Where data sets lie; else the user's cache is searched."),
]
DataName = Annotated[str, typer.Argument(metavar="DATASET", help="A data set, as listed by `unspur data list`.")]
Method = Annotated[str, typer.Argument(help="A method, as listed by `unspur methods`.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change any setting, such as erm.lr=0.1 or data.conflict=0.005."),
]


def show_specs(specs: dict[str, Any], as_json: bool) -> None:
    """Names, one line each, with their options and defaults."""
    from unspur.cli.console import describe_specs, print_specs

    if as_json:
        print_json(describe_specs(specs))
    else:
        print_specs(specs)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    typer.echo(json.dumps(value, indent=1))


def say(sentence: str) -> None:
    """A sentence for a person, on stderr."""
    typer.echo(sentence, err=True)
