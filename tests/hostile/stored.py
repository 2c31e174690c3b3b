"""What two folders that should be the same differ in: every byte, but for times that were measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from unspur.train.checkpoints import load_state

TIMES = {"seconds", "expected_seconds"}
# A page says how long things took, and a table of files how old they are.
MEASURED = re.compile(rb"\d[\d.,]*\s?(?:ms|s|min|h|seconds|minutes|hours|images a second)\b|in \d[\d.]* s")
SECONDS = re.compile(rb'<td class="number">\d+</td></tr>')  # the last column of a repair's table
PASSING = {".lock"}


def contents(folder: Path) -> dict[str, Any]:
    """Every file below ``folder`` by name, and folders that are empty."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            if not any(path.iterdir()):
                found[name] = "empty folder"
        elif path.name not in PASSING:
            found[name] = _content(path)
    return found


def _content(path: Path) -> Any:
    content = path.read_bytes()
    if path.suffix == ".json":
        return _without_times(json.loads(content))
    if "checkpoints" in path.parts:
        return {name: repr(value) for name, value in load_state(path).items() if name not in TIMES}
    if path.name == "repair.html":
        content = SECONDS.sub(b"(time)", content)
    return MEASURED.sub(b"(time)", content) if path.suffix in (".html", ".md") else content


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if key not in TIMES}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The names of files that are not the same in both."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
