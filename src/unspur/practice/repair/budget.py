"""How much time a repair may take: as a person writes it, and as the work uses it up."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from unspur.core.progress import Progress, duration
from unspur.errors import UnspurError

UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class OutOfTime(UnspurError):
    """The budget ended in the middle of a candidate."""


def seconds_of(text: str) -> float:
    """A time such as 20m in seconds.

    >>> seconds_of("90s"), seconds_of("20m"), seconds_of("1.5h")
    (90.0, 1200.0, 5400.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)", text.strip().lower())
    if not found or not float(found[1]):
        raise UnspurError(f"A budget is a time such as 90s, 20m or 1.5h, but got '{text}'.")
    return float(found[1]) * UNITS[found[2]]


class Budget:
    """So many seconds in all, of which earlier commands have used ``spent``."""

    def __init__(self, total: float, spent: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self._earlier, self._clock, self._began = total, spent, clock, clock()

    @property
    def spent(self) -> float:
        return self._earlier + self._clock() - self._began

    @property
    def left(self) -> float:
        return max(0.0, self.total - self.spent)

    def shown_by(self, progress: Progress, what: str) -> Progress:
        """``progress`` that also shows how much of the budget is used, and stops the work when there is none left."""

        def show(stage: str, done: float) -> None:
            progress(f"{what}, {stage}", done)
            progress("budget", min(1.0, self.spent / self.total))
            if not self.left:
                raise OutOfTime(
                    f"The budget of {duration(self.total)} ended; the same command with a larger --budget goes on."
                )

        return show
