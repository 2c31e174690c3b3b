"""Progress bars with the time left, on stderr, for people only."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _RateColumn(ProgressColumn):
    """How many a second, of a task that has said what it counts."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not task.fields.get("counted") or speed is None:
            return Text("")
        return Text(f"{speed * task.fields['counted']:,.0f} {task.fields['what']} a second")


class ProgressBar:
    """One bar a stage; draws nothing when stderr is not a terminal."""

    def __init__(self, title: str) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            _RateColumn(),
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
        self._bars.update(self._task(stage), completed=done)

    def counts(self, stage: str, total: int, what: str) -> None:
        """Show a rate beside the bar of ``stage``, which goes through ``total`` of ``what``."""
        self._bars.update(self._task(stage), counted=total, what=what)

    def _task(self, stage: str) -> TaskID:
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(f"{self._title} · {stage}", total=1.0)
        return self._tasks[stage]


class RunsBar:
    """Runs that have ended and the time that the others will take, on stderr; nothing when that is not a terminal."""

    def __init__(self, total: int, done: int) -> None:
        self._bar = Progress(
            TextColumn("sweep"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task("", total=total, completed=done, left="")
        self._left, self._done, self._began = total - done, 0, time.monotonic()

    def __enter__(self) -> RunsBar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def ended(self) -> None:
        """One more run has ended."""
        self._done += 1
        pace = (time.monotonic() - self._began) / self._done
        left = duration(pace * (self._left - self._done))
        self._bar.update(self._task, advance=1, left=f"about {left} left" if self._done < self._left else "")


@contextlib.contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that is given how many more are done; the bar is on stderr, and only if that is a terminal."""
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(45), duration(170), duration(9000)
    ('45 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
