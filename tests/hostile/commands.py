"""The commands that write, a line each: whoever adds one adds a line, and it is killed and starved like the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hostile import world
from hostile.calling import call

RUN = ["--set", "data.train=64", "--set", "data.val=8", "--set", "data.test=20", "--set", "erm.epochs=2"]
VECTORS = ["erm", "parity", *RUN, "--set", "arch.width=8", "--out", "out"]
PHOTOS = ["data", "info", "folder", "--set", "data.root=photos", "--set", "data.size=16"]
REPAIR = ["repair", "pictures", "--methods", "class_balanced", "--budget", "1h", "--out", "out/repairs"]


class Command(NamedTuple):
    """A command line that writes below ``out`` (or the cache), and how it is started again after a kill."""

    arguments: list[str]
    again: list[str] | None = None  # None: the same
    step: int = 1  # of its operations every step-th is tried: those of long commands are many and alike


COMMANDS: dict[str, Command] = {
    "train": Command(["train", *VECTORS], ["train", *VECTORS, "--resume"]),
    "sweep": Command(["sweep", *VECTORS, "--grid", "erm.lr=0.1,0.2", "--seeds", "0", "--jobs", "1"]),
    "plant": Command(["data", "plant", "photos", "--shortcut", "square", "--conflict", "0.1", "--out", "out/new"]),
    "decode cache": Command(PHOTOS),
    "analyze": Command(["analyze", "out/parity", "--samples", "4"]),
    "report": Command(["report", "parity", "--out", "out/report.html"]),
    "audit": Command(["audit", "photos", "--out", "out"]),
    "repair": Command(REPAIR, step=9),
    "predict": Command(["predict", "exported", "photos", "--out", "out/labels.csv"],
                       ["predict", "exported", "photos", "--out", "out/labels.csv", "--resume"]),
    "export": Command(["export", "pictures", "--out", "out/exported", "--format", "safetensors"]),
    "compare": Command(["compare", "erm,focal", "parity", *RUN[:-2], "--seeds", "0", "--out", "out", "--rates", "0.1",
                        "--jobs", "1"], step=11),
    "preview": Command(["data", "preview", "moon_star", "--set", "data.train=16", "--out", "out/preview.png"]),
}  # fmt: skip


def prepared(good: Path, to: Path) -> Path:
    """A copy of the world with an ``out`` to write to and a cache of its own."""
    to.mkdir()
    folder = world.copied(good, to / "world")
    (folder / "out").mkdir()
    if (folder / "parity").exists():  # `analyze` writes into a run
        run = (folder / "parity").resolve()
        target = folder / "out" / run.name
        run.rename(target)
        for path in target.rglob("*.json"):
            world.own(path)
        (folder / "out" / "parity").symlink_to(run.name)
        (folder / "parity").unlink()
        (folder / "parity").symlink_to(f"out/{run.name}")
    return folder


def doing(arguments: list[str], folder: Path) -> Callable[[], int]:
    """The command as a function that returns its exit code, said things on stderr."""

    def work() -> int:
        import sys

        with world.inside(folder):
            outcome = call(arguments)
        sys.stderr.write(outcome.err + outcome.raised)
        return 98 if outcome.code is None else outcome.code

    return work
