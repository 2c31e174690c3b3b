"""Rows of a file of results that are made one by one, each once: what has ended survives whatever comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from unspur.core.files import read_json, write_json


def add_row(file: Path, command: str, place: Mapping[str, Any], make: Callable[[], Mapping[str, Any]]) -> None:
    """Make the row at ``place`` and store it, unless it is there already."""
    stored = read_json(file) if file.exists() else {"command": command, "rows": []}
    if any(all(old[key] == value for key, value in place.items()) for old in stored["rows"]):
        return
    made = {**place, **make()}
    write_json(file, {**stored, "rows": [*stored["rows"], made]})
    print(made, flush=True)
