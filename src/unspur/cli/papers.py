"""The command that reproduces published tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unspur.cli.shared import DataDir, Json, Quiet, Runs, Seeds, Settings, print_json, say, suggest
from unspur.errors import RunFailed


def reproduce(
    table: Annotated[str, typer.Argument(metavar="PAPER/TABLE", help="Such as masktune/table6; `list` names all.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Small settings that only show that everything works.")
    ] = False,
    seeds: Seeds = "0,1,2",
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run only this method, data set or row; finished runs of the rest are read."),
    ] = None,
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="Where measured tables are stored.")] = Path("results"),
    runs: Runs = Path("runs"),
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Reproduce a published table: ours beside theirs. What needs data that are not here is skipped and named.

    Example: unspur reproduce masktune/table6 --quick --seeds 0
    """
    from unspur.cli.show.papers import print_table, print_tables
    from unspur.papers.reproduce import TABLES, parse_seeds, table_named
    from unspur.papers.reproduce import reproduce as reproduce_table

    if table == "list":
        listed = [{"table": key, "caption": entry.caption} for key, entry in TABLES.items()]
        if as_json:
            return print_json(listed)
        print_tables(listed)
        return suggest("unspur reproduce masktune/table6 --quick --seeds 0", why="minutes instead of hours")
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
        suggest("unspur reproduce list", why="the other tables")
    if failed := outcome["failed"]:
        raise RunFailed(
            f"{len(failed)} of the table's settings failed, such as {failed[0]}; start the same command again."
        )
