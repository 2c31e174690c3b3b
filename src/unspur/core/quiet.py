"""Whether to show results only: no progress, no hints."""

from __future__ import annotations

import os

QUIET = "UNSPUR_QUIET"  # an environment variable, so that the processes that a command starts are quiet as well


def is_quiet() -> bool:
    """Whether `--quiet` or the environment asks for silence."""
    return os.environ.get(QUIET, "").lower() not in ("", "0", "false", "no", "off")
