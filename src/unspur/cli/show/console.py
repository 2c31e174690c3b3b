"""How all printed tables look: the console they go to, and numbers as text."""

from __future__ import annotations

import sys

from rich.console import Console


def console() -> Console:
    # Piped output is as wide as tables with many columns need.
    return Console() if sys.stdout.isatty() else Console(width=160)


def percent(share: float | None) -> str:
    """A share as a percentage; what is unknown as a dash.

    >>> percent(0.98765), percent(None)
    ('98.77 %', '-')
    """
    return "-" if share is None else f"{100 * share:.2f} %"


def with_deviation(value: float | None, deviation: float | None, digits: int = 2) -> str:
    """A mean and the deviation over seeds; what is unknown as a dash.

    >>> with_deviation(96.447, 0.289), with_deviation(96.447, None), with_deviation(None, None)
    ('96.45 ± 0.29', '96.45', '-')
    """
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if deviation is None else f"{value:.{digits}f} ± {deviation:.{digits}f}"
