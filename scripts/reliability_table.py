"""The tables of results/reliability.md, from the lines that `make hostile` and `make soak` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]

HUNTS = {
    "bad inputs": "bad inputs: answered with a sentence, no traceback, nothing written",
    "kills": "SIGKILL before a file operation, then started again: every byte the same",
    "full disk": "disk full at a write, or files cut short: a sentence, then started again: every byte the same",
}


def hunted(lines: Sequence[Line]) -> list[Line]:
    """The lines of whole hunts: the ordinary tests' samples of kills are among what is tried anyway."""
    return [line for line in lines if line["hunt"] in HUNTS and not line["what"].endswith("sample")]


def total_rows(lines: Sequence[Line]) -> list[list[object]]:
    """A row a hunt: what was tried, how much went well, files compared."""
    rows: list[list[object]] = []
    for hunt, what in HUNTS.items():
        own = [line for line in hunted(lines) if line["hunt"] == hunt]
        if own:
            files = sum(line.get("files", 0) for line in own)
            tried, well = (sum(line[name] for line in own) for name in ("tried", "well"))
            rows.append([what, f"{tried:,}", f"{well:,}", f"{files:,}" if files else None])
    return rows


def kill_rows(lines: Sequence[Line]) -> list[list[object]]:
    """A row for each method and command that was killed: operations that it has, those it was killed before, files."""
    own = sorted((line for line in hunted(lines) if line["hunt"] == "kills"), key=lambda line: str(line["what"]))
    return [[line["what"], line["of"], line["tried"], line["well"], line["files"]] for line in own]


def soak_rows(lines: Sequence[Line]) -> list[list[object]]:
    """A row a soak: how long, runs, kills, files that are the same, open files and memory of one process."""
    rows: list[list[object]] = []
    for line in lines:
        if line["hunt"] == "soak":
            (open_first, open_last), (first, last) = line["open_files"], line["memory_mb"]
            ray = f"{line['ray_equal']} of {line['ray_files']}" if "ray_files" in line else "not tried"
            equal = f"{line['equal']:,} of {line['files']:,}"
            grown = [f"{open_first} → {open_last}", f"{first:.0f} → {last:.0f} MB"]
            rows.append([line["minutes"], line["runs"], line["kills"], equal, ray, line["rounds"], *grown])
    return rows
