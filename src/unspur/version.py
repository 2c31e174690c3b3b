"""The version, in one place: the build reads it from here; and the commit of a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__version__ = "0.1.0"


@cache
def commit() -> str | None:
    """The checkout's commit when first asked, marked where files differ from it; None outside a checkout."""
    import subprocess  # not for a command that only prints help

    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        answer = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()
