"""The command that says what a machine has for unspur."""

from __future__ import annotations

import typer

from unspur.cli.shared import DataDir, Json, print_json, suggest


def doctor(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Show versions, devices, caches, data and extras, and what to do about what is missing.

    The exit code is 1 where something is missing that unspur cannot do without.

    Example: unspur doctor
    """
    from unspur.cli.show.doctor import print_diagnosis
    from unspur.practice.doctor import diagnose

    found = diagnose(data_dir)
    if as_json:
        print_json(found)
    else:
        print_diagnosis(found)
        if found["problems"]:
            suggest("unspur doctor", why="again, once the problems are solved")
        else:
            suggest("unspur demo", why="the whole story on the embedded digits")
    if found["problems"]:
        raise typer.Exit(1)
