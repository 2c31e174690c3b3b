"""The version, in one place: the build reads it from here; and the commit of a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__version__ = "0.2.0"


@cache
def commit() -> str | None:
    """The checkout's commit when first asked, marked where the package differs from it; None outside a checkout.

    A package that was installed inside the checkout of something else is not part of it. Files beside the package, such
    as results that are being written, do not change what it computes.
    """
    try:
        _git("ls-files", "--error-unmatch", "--", Path(__file__).name)
        name, changes = _git("describe", "--always", "--abbrev=12"), _git("status", "--porcelain", "--", ".")
    except (OSError, ValueError):
        return None
    return f"{name}-dirty" if changes else name


def _git(*arguments: str) -> str:
    import subprocess  # not for a command that only prints help

    answer = subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise ValueError(answer.stderr)
    return answer.stdout.strip()
