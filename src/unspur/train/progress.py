"""A progress bar with the time left, on stderr, for people only."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn


class ProgressBar:
    """One bar a stage; draws nothing when stderr is not a terminal."""

    def __init__(self, title: str) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._title = title
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> ProgressBar:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, stage: str, done: float) -> None:
        """Tell that ``stage`` is ``done`` of the way (0 to 1)."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(f"{self._title} · {stage}", total=1.0)
        self._bars.update(self._tasks[stage], completed=done)
