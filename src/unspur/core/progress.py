"""How far long work has come: bars with the time left on a terminal, a line now and then in a log. All on stderr;
nothing with `--quiet`.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bars

from unspur.core.quiet import is_quiet
from unspur.errors import UnspurError

Progress = Callable[[str, float], None]  # given a stage's name, and the share of it that is done (0 to 1)
Done = Callable[[float], None]  # the same of one stage

FIRST_LINE, NEXT_LINE = 10.0, 30.0  # seconds until a log has its first line, and from one line to the next
UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}  # of time
SHORT = 2.0  # seconds: the bar of a stage that took less goes away when it ends


def silent(stage: str, done: float) -> None:
    """Show nobody how far a stage has come."""


def of_stage(progress: Progress, stage: str) -> Done:
    """``progress`` for a function that has a single stage."""
    return partial(progress, stage)


class ProgressBar:
    """One bar for each stage of a piece of work, which ``title`` names."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._stages: dict[str, _Stage] = {}

    def __enter__(self) -> ProgressBar:
        _DISPLAY.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _DISPLAY.close(*self._stages.values())

    def __call__(self, stage: str, done: float) -> None:
        """Show that ``stage`` is ``done`` of the way (0 to 1)."""
        self._stage(stage, done).reach(done)

    def counts(self, stage: str, total: int, what: str) -> None:
        """Show a rate beside the bar of ``stage``, which goes through ``total`` of ``what``."""
        self._stage(stage, 0.0).counted = total, what

    def _stage(self, stage: str, done: float) -> _Stage:
        if stage not in self._stages:
            self._stages[stage] = _Stage(f"{self._title} · {stage}", done)
        return self._stages[stage]


@contextlib.contextmanager
def counting(
    what: str, total: int, done: int = 0, text: Callable[[int], str] = "{:,}".format
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of items just done, out of ``total``; ``done`` were done before.

    ``text`` formats such a number.
    """
    _DISPLAY.open()
    stage, reached = _Stage(what, done / max(total, 1)), done
    try:

        def advance(count: int) -> None:
            nonlocal reached
            reached += count
            stage.reach(reached / max(total, 1), f"{text(reached)}/{text(total)}")

        yield advance
    finally:
        _DISPLAY.close(stage)


class _Stage:
    """One stage: when it began, and how far along it was then (a resumed stage does not begin at 0)."""

    def __init__(self, label: str, done: float) -> None:
        self.label, self._first, self._done, self._began = label, done, done, monotonic()
        self.task = _DISPLAY.add(label)
        self.counted: tuple[int, str] | None = None  # how many of what it goes through, to show a rate per second

    def reach(self, done: float, count: str = "") -> None:
        now, left = monotonic(), ""
        if done < self._done:  # the same work once more, such as on another split
            self._first, self._began = done, now
        self._done = done
        if self._first < done < 1:
            left = f"about {duration((now - self._began) * (1 - done) / (done - self._first))} left"
        if self.counted and now > self._began and done > self._first:
            total, what = self.counted
            count = f"{total * (done - self._first) / (now - self._began):,.0f} {what} a second"
        _DISPLAY.update(self, done, count, left, hide=done >= 1 and now - self._began < SHORT)


class _Display:
    """What stderr shows. There is only one, so work inside other work adds its bars to the same display."""

    def __init__(self) -> None:
        self._users, self._next_line = 0, 0.0
        self._bars: Bars | None = None

    def open(self) -> None:
        if not self._users:
            self._next_line = monotonic() + FIRST_LINE
            self._bars = _bars() if sys.stderr.isatty() and not is_quiet() else None
            if self._bars:
                self._bars.start()
        self._users += 1

    def close(self, *stages: _Stage) -> None:
        self._users -= 1
        if not self._bars:
            return
        if self._users:  # finished bars would push those of the work around them off the screen
            for stage in stages:
                if stage.task is not None:
                    self._bars.remove_task(stage.task)
        else:
            self._bars.stop()
            self._bars = None

    def add(self, label: str) -> TaskID | None:
        return self._bars.add_task(escape(label), total=1.0, count="", left="") if self._bars else None

    def update(self, stage: _Stage, done: float, count: str, left: str, hide: bool) -> None:
        if self._bars and stage.task is not None:
            self._bars.update(stage.task, completed=done, count=count, left=left, visible=not hide)
        elif self._users and not self._bars and not is_quiet() and done < 1 and monotonic() >= self._next_line:
            self._next_line = monotonic() + NEXT_LINE
            shown = f"{stage.label} {count or f'{100 * done:.0f} %'}"
            print(f"{shown}, {left}" if left else shown, file=sys.stderr, flush=True)


_DISPLAY = _Display()


def _bars() -> Bars:
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
    more = TextColumn("{task.fields[count]}"), TextColumn("{task.fields[left]}")
    return Bars(*columns, *more, console=Console(stderr=True))


def duration(seconds: float) -> str:
    """A duration in a readable form.

    >>> duration(45), duration(170), duration(9000)
    ('45 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def seconds_of(text: str) -> float:
    """The seconds in a duration such as "20m".

    >>> seconds_of("90s"), seconds_of("20m"), seconds_of("1.5h")
    (90.0, 1200.0, 5400.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)", text.strip().lower())
    if not found or not float(found[1]):
        raise UnspurError(f"A budget is a time such as 90s, 20m or 1.5h, but got '{text}'.")
    return float(found[1]) * UNITS[found[2]]
