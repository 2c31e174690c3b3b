"""What tables of results share: files of results/, lines of Markdown, and how numbers are printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"


def read(name: str) -> Any:
    """What results/NAME.json holds, or the lines of results/NAME.jsonl."""
    file = RESULTS / f"{name}.json"
    if file.exists():
        return json.loads(file.read_text(encoding="utf-8"))
    return [json.loads(line) for line in file.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]


def sweeps() -> dict[str, dict[str, Any]]:
    return {file.stem: read(f"large-lr/{file.stem}") for file in sorted((RESULTS / "large-lr").glob("*.json"))}


def markdown(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A table; None is an empty cell."""
    lines = [list(headers), ["---"] * len(headers), *rows]
    return ["| " + " | ".join("" if cell is None else str(cell) for cell in line) + " |" for line in lines]


def made(found: Mapping[str, Any]) -> str:
    """How a result was made, as its file says: command, seeds, sizes and commit."""
    rows = found.get("rows", found.get("runs", [found]))
    seeds = found.get("seeds") or sorted({row["seed"] for row in rows if "seed" in row})
    parts = [f"`{found['command']}`"]
    parts += [f"seeds {', '.join(map(str, seeds))}"] if len(seeds) > 1 else [f"seed {seeds[0]}"] if seeds else []
    sizes = {row["sizes"]["train"] for row in rows if row.get("sizes")} or {found.get("training images")}
    parts += [f"{size:,} training images" for size in sizes if size and len(sizes) == 1]
    commits = list(dict.fromkeys(row["commit"] for row in rows if row.get("commit"))) or [found.get("commit")]
    parts += [f"commit {', '.join(commits)}"] if all(commits) else []
    return "; ".join(parts) + "."


def number(value: float | None, deviation: float | None = None) -> str:
    """Per cent with two digits, a share with three.

    >>> number(96.447, 0.289), number(0.8041)
    ('96.45 ± 0.29', '0.804')
    """
    if value is None:
        return ""
    digits = 3 if abs(value) < 2 else 2
    return f"{value:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")


def over_seeds(shares: Sequence[float]) -> str:
    """Shares as per cent with one digit: their mean, and the deviation of several.

    >>> over_seeds([0.905, 0.911]), over_seeds([0.905]), over_seeds([])
    ('90.8 ± 0.4', '90.5', '')
    """
    if not shares:
        return ""
    return f"{100 * fmean(shares):.1f}" + (f" ± {100 * stdev(shares):.1f}" if len(shares) > 1 else "")


def as_printed(value: float | None) -> str:
    """A published number, which must not look more precise than it was."""
    return "" if value is None else f"{value:g}"


def short(value: float) -> str:
    return f"{value:g}" if value == int(value) else f"{value:.1f}"
