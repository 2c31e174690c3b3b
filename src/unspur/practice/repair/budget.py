"""How much time a repair may take, as the work uses it up."""

from __future__ import annotations

import time
from collections.abc import Callable

from unspur.core.progress import Progress, duration
from unspur.errors import RunFailed


class OutOfTime(RunFailed):
    """The budget ended in the middle of the work."""


class Budget:
    """A number of seconds in all, of which earlier commands have used ``spent``."""

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
