"""Kill a command before each of its file operations, or let it find the disk full there, and start it again."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from hostile.commands import COMMANDS, doing, prepared
from hostile.faults import Ended, Fault, in_process
from hostile.stored import contents, differences
from methods.shrinking import shrunk
from unspur.data.sets.synthetic import MoonStar
from unspur.errors import RunFailed, UnspurError
from unspur.methods.catalog import METHODS
from unspur.models.small_cnn import SmallCNN
from unspur.runs.config import Config
from unspur.runs.experiment import run

STRIDE = int(os.environ.get("UNSPUR_STRIDE", "1"))  # on a slow machine: every so many of the places
LIMITS = (0, 100, 1_000, 10_000, 100_000)  # bytes beyond which no file grows


class Hunted(NamedTuple):
    """Something that writes: how to begin it in a new folder, how to start it again there, and what it leaves."""

    begin: Callable[[Path], Callable[[], int]]
    again: Callable[[Path], Callable[[], int]]
    kept: str  # the part of the folder that must be the same afterwards


Faulted = tuple[str, Fault, int | None]  # where, what, and bytes beyond which no file grows


class Found(NamedTuple):
    """What a hunt tried and found."""

    faults: int
    files: int  # that were compared, all faults together
    wrong: list[str]

    def counts(self) -> dict[str, int]:
        """For the record of what was tried."""
        return {"tried": self.faults, "well": self.faults - len(self.wrong), "files": self.files}


def command(name: str, good: Path) -> Hunted:
    """A command of the table, in a copy of the world in ``good``."""
    made = COMMANDS[name]

    def begin(folder: Path) -> Callable[[], int]:
        return doing(made.arguments, prepared(good, folder))

    return Hunted(begin, lambda folder: doing(made.again or made.arguments, folder / "world"), "world/out")


def training(method: str, devices: int) -> Hunted:
    """A short run of ``method``, called as the command line calls it."""
    spec = shrunk(METHODS[method]())
    config = Config(spec, MoonStar(train=72, val=24, test=16), SmallCNN(hidden=0))

    def begin(folder: Path) -> Callable[[], int]:
        folder.mkdir(exist_ok=True)

        def work() -> int:
            try:
                result = run(config, folder / "runs", devices=devices, resume=True)
            except UnspurError as error:  # as the command line does
                sys.stderr.write(f"Error: {error}\n")
                return 1 if isinstance(error, RunFailed) else 2
            except OSError as error:
                sys.stderr.write(f"Error: {error}\n")
                return 1
            return 0 if result["status"] == "done" else 3

        return work

    return Hunted(begin, begin, "runs")


def chosen(places: Sequence[int], what: str, sample: int | None) -> Sequence[int]:
    """All places, or as many as ``sample``, the same ones each time that ``what`` is hunted."""
    return places if sample is None else sorted(random.Random(what).sample(places, min(sample, len(places))))


def whole(hunted: Hunted, folder: Path) -> tuple[list[str], dict[str, object]]:
    """The operations of an undisturbed start, and what it leaves."""
    ended = in_process(hunted.begin(folder), folder, Fault())
    assert ended.code == 0, ended.said
    left = contents(folder / hunted.kept)
    shutil.rmtree(folder)
    return ended.operations, left


def killed(hunted: Hunted, folder: Path, places: Iterable[int], expected: dict[str, object]) -> Found:
    """Kill it before each of the operations at ``places``, start it again and compare what is left."""
    faults = [(f"before operation {place}", Fault("kill", place), None) for place in places]
    return _faulted(hunted, folder, faults, expected, _killed)


def _killed(ended: Ended) -> bool:
    """It was killed; or a process among several, and the one that waited for it says so or had nothing left to do."""
    reported = "killed by SIGKILL" in ended.said and "Traceback" not in ended.said
    outlived = ended.code == 0 or (ended.code == 1 and reported)
    return ended.killed and (ended.code == -signal.SIGKILL or outlived)


def starved(
    hunted: Hunted, folder: Path, places: Iterable[int], expected: dict[str, object], limits: Iterable[int] = LIMITS
) -> Found:
    """Let the disk be full from each operation on, or files end at each limit; later there is room again."""
    faults: list[Faulted] = [(f"full from operation {place}", Fault("full", place), None) for place in places]
    faults += [(f"no file beyond {limit} bytes", Fault(), limit) for limit in limits]
    return _faulted(hunted, folder, faults, expected, _spoken)


def _spoken(ended: Ended) -> bool:
    """It ended well, or with a sentence."""
    return ended.code in (0, 1, 2) and "Traceback" not in ended.said and "error in the program" not in ended.said


def _faulted(
    hunted: Hunted,
    folder: Path,
    faults: Iterable[Faulted],
    expected: dict[str, object],
    allowed: Callable[[Ended], bool],
) -> Found:
    """Meet each fault, which may end only as ``allowed``, start again without one, and compare what is left."""
    wrong, tried, compared = [], 0, 0
    for tried, (where, fault, limit) in enumerate(faults, 1):
        own = folder / str(tried)
        first = in_process(hunted.begin(own), own, fault, limit)
        # Where it ended well in spite of the fault, there is nothing left to do.
        ended = first if first.code == 0 else in_process(hunted.again(own), own, Fault())
        left = contents(own / hunted.kept) if (own / hunted.kept).exists() else {}
        compared += len(left)
        if not allowed(first):
            wrong.append(f"{where}: it ended with {first.code}: {first.said[-700:]}")
        elif ended.code != 0:
            wrong.append(f"{where}: started again it ended with {ended.code}: {ended.said[-700:]}")
        elif differ := differences(left, expected):
            wrong.append(f"{where}: {', '.join(differ)} differ")
        shutil.rmtree(own)
    return Found(tried, compared, wrong)
