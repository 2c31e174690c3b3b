"""Bad inputs without end: a seed and a number make a case, and the same ones make the same case."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import typer

from hostile import damage
from unspur.cli.main import app
from unspur.core.options import options
from unspur.data.catalog import DATASETS
from unspur.methods.catalog import METHODS
from unspur.models.catalog import ARCHS

NUMBERS = [
    "abc", "", "nan", "inf", "-inf", "-1", "0", "1e999", "-1e999", "99999999999999999999", "1.5", "0x10", "\uff13",
    "1_0", "1e-320", "true", "None", " 3 ", "3,", ",", "1,2", "1/0", "--", "-0",
]  # fmt: skip
TEXTS = [
    "", " ", "no such", "../..", "~nosuchuser/x", "/dev/null/x", "/dev/null", "/proc/self/mem", "x" * 300, "x" * 5000,
    "\x1b[31mred\x1b[0m", "a\nb", "caf\u00e9\u202exe", "=", "==", ".", "..", "/", "-", "%s{}{0}", "*", "[", "\\", "'",
    '"', "http://example.invalid/x", "loop", "loop/x", "file", "file/x", "photos", "photos/cat", "parity", "table.csv",
    "\udc80", "a,b", ",", "none", "null", "__class__", "erm.lr", "\u0000",
]  # fmt: skip
# Numbers that a person may mean, and that only take long: they are not tried where large.
PATIENT = ("epochs", "steps", "iterations", "tries", "every", "samples", "trials", "fits", "anneal", "after", "rounds")
LARGE = ("99999999999999999999",)

VECTORS = ["--set", "data.train=64", "--set", "data.val=8", "--set", "data.test=20", "--set", "erm.epochs=1"]
RUN = [*VECTORS, "--set", "arch.width=8"]
# A call of each command that works and takes a moment: whoever adds a command adds a line.
CALLS: dict[str, list[str]] = {
    "demo": ["demo", "--out", "file/x"],  # it takes a minute, so that it is only called with an output that it refuses
    "train": ["train", "erm", "parity", *RUN, "--out", "new"],
    "evaluate": ["evaluate", "parity"],
    "report": ["report", "parity", "--out", "new.html"],
    "audit": ["audit", "photos", "--out", "file/x"],
    "repair": ["repair", "photos", "--out", "file/x"],
    "predict": ["predict", "exported", "photos/cat", "--out", "new.csv"],
    "export": ["export", "pictures", "--out", "new", "--format", "safetensors"],
    "methods": ["methods"],
    "archs": ["archs"],
    "doctor": ["doctor"],
    "compare": ["compare", "erm,focal", "parity", "--seeds", "0", "--out", "file/x", "--rates", "0.1"],
    "sweep": ["sweep", "erm", "parity", *RUN, "--grid", "erm.lr=0.1", "--seeds", "0", "--out", "new", "--jobs", "1"],
    "analyze": ["analyze", "parity", "--samples", "4"],
    "probe": ["probe", "erm", "parity", *RUN],
    "reproduce": ["reproduce", "masktune/table6", "--quick", "--out", "file/x", "--runs", "file/y"],
    "data list": ["data", "list"],
    "data info": ["data", "info", "parity"],
    "data fetch": ["data", "fetch", "parity"],
    "data preview": ["data", "preview", "moon_star", "--set", "data.train=16", "--out", "new.png"],
    "data plant": ["data", "plant", "photos", "--shortcut", "square", "--conflict", "0.1", "--out", "new"],
}
HEAVY = {"demo", "audit", "repair", "compare", "reproduce"}  # where a good value would mean minutes of work


class Case(NamedTuple):
    """A command line, and what is done to a copy of the world before."""

    arguments: list[str]
    damage: Callable[[Path], str] | None = None  # returns what it did


def case(seed: int, number: int) -> Case:
    """The case of that number."""
    draw = random.Random(f"{seed} {number}")
    kinds = [_option, _option, _setting, _setting, _setting, _damaged, _damaged, _damaged, _argument, _structure]
    return kinds[number % len(kinds)](draw)


@cache
def _commands() -> dict[str, list[typer.core.TyperOption]]:
    """The options of every command that take a value."""
    found = {}

    def walk(command, path):
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                walk(inner, (*path, name))
        else:
            options = [option for option in command.params if option.opts[0].startswith("--")]
            found[" ".join(path)] = [option for option in options if not option.is_flag]

    walk(typer.main.get_command(app), ())
    return found


def _value(draw: random.Random, name: str) -> str:
    allowed = [value for value in NUMBERS if name not in PATIENT or value not in LARGE]
    return draw.choice(draw.choice([allowed, TEXTS]))


def _option(draw: random.Random) -> Case:
    """One option of one command with a value that nobody means."""
    command = draw.choice([name for name, options in _commands().items() if options])
    option = draw.choice(_commands()[command])
    name = option.opts[0]
    arguments = list(CALLS[command])
    if name in ("--out", "--runs", "--page") and command in HEAVY:
        value = draw.choice(["file/x", "/dev/null/x", "/proc/x", "loop", "loop/x"])
    else:
        value = _value(draw, name.strip("-"))
    if name in arguments and name != "--set":
        place = arguments.index(name)
        del arguments[place : place + 2]
    return Case([*arguments, f"{name}={value}"])


def _argument(draw: random.Random) -> Case:
    """One word of a command line replaced, left out, or put in."""
    command = draw.choice(sorted(set(CALLS) - HEAVY))
    arguments = list(CALLS[command])
    place = draw.randrange(len(command.split()), len(arguments) + 1)
    kind = draw.choice(["replace", "drop", "add", "double"])
    if kind == "add" or place == len(arguments):
        arguments.insert(place, draw.choice([*TEXTS, "--nosuch", "--json=1", "-x", "--", "--set", "--help=x"]))
    elif kind == "replace":
        arguments[place] = draw.choice(TEXTS)
    elif kind == "drop":
        del arguments[place]
    else:
        arguments.insert(place, arguments[place])
    return Case(arguments)


@cache
def _fields() -> list[tuple[list[str], str]]:
    """Every setting that can be made, behind the beginning of a command line that takes it."""
    small = ["--set", "data.train=32", "--set", "data.val=16", "--set", "data.test=16", "--out", "new"]
    found = []
    for name, method in METHODS.items():
        base = ["train", name, "moon_star", "--arch", "small_cnn", *small]
        found += [(base, option.key) for option in options(method())]
    for name, spec in DATASETS.items():
        base = ["data", "info", name, *(["--set", "data.root=photos"] if name == "folder" else [])]
        found += [(base, "data." + option.key) for option in options(spec())]
    for name, arch in ARCHS.items():
        images = name != "fcn"
        base = ["train", "erm", "moon_star" if images else "parity", "--arch", name, *small, "--set", "erm.epochs=0"]
        found += [(base, "arch." + option.key) for option in options(arch())]
    return found


def _setting(draw: random.Random) -> Case:
    """One field of one method, data set or architecture with a value that nobody means."""
    base, key = draw.choice(_fields())
    field = key.rpartition(".")[2]
    small = [] if base[0] == "data" else _quick(base[1], key)
    value = _value(draw, field)
    return Case([*base, *small, "--set", f"{key}={value}"])


@cache
def _quick_fields(method: str) -> list[str]:
    counts = {"epochs": "1", "steps": "2", "tries": "1", "iterations": "1", "samples": "8", "fits": "1", "anneal": "1"}
    return [f"{o.key}={counts[o.key.rpartition('.')[2]]}" for o in options(METHODS[method]())
            if o.key.rpartition(".")[2] in counts and isinstance(o.default, int)]  # fmt: skip


def _quick(method: str, but: str) -> list[str]:
    """Settings that make a run of ``method`` short, without the one that is tried and what would be part of it."""
    kept = [setting for setting in _quick_fields(method) if not setting.startswith((f"{but}=", f"{but}."))]
    return [word for setting in kept for word in ("--set", setting)]


READERS = {
    "parity": [["evaluate", "parity"], ["evaluate", "parity", "--coverage", "0.5"],
               ["report", "parity", "--out", "n.html"], ["analyze", "parity", "--samples", "4"],
               ["evaluate", "parity", "moon_star"]],
    "pictures": [["evaluate", "pictures"], ["evaluate", "pictures", "photos"], ["predict", "pictures", "photos/cat"],
                 ["export", "pictures", "--out", "new", "--format", "safetensors"],
                 ["report", "pictures", "--out", "n.html"],
                 ["audit", "pictures", "--out", "file/x"], ["repair", "pictures", "--out", "file/x"]],
    "exported": [["predict", "exported", "photos/cat"], ["predict", "exported", "photos", "--coverage", "0.5"]],
    "audit": [["repair", "audit", "--out", "file/x"], ["predict", "pictures", "photos/cat", "--audit", "audit"],
              ["export", "pictures", "--out", "new", "--format", "safetensors", "--audit", "audit"]],
    "photos": [["data", "info", "folder", "--set", "data.root=photos"], ["evaluate", "pictures"],
               ["evaluate", "pictures", "photos"], ["predict", "pictures", "photos"],
               ["data", "plant", "photos", "--shortcut", "square", "--conflict", "0.1", "--out", "new"],
               ["data", "preview", "folder", "--set", "data.root=photos", "--set", "data.size=16", "--out", "n.png"]],
    "table.csv": [["data", "info", "folder", "--set", "data.csv=table.csv"], ["evaluate", "pictures", "table.csv"],
                  ["predict", "pictures", "table.csv"]],
}  # fmt: skip


def _damaged(draw: random.Random) -> Case:
    """A stored thing with one file of it damaged, and a command that reads it."""
    name = draw.choice([*READERS, "parity", "pictures"])
    arguments = list(draw.choice(READERS[name]))
    own = random.Random(draw.random())
    return Case(arguments, lambda world: damage.damage(world / name, own))


def _structure(draw: random.Random) -> Case:
    """A configuration of another run in a folder that is named for it: the key is right, and what it says is not."""
    name = draw.choice(["parity", "pictures"])
    arguments = list(draw.choice(READERS[name]))
    own = random.Random(draw.random())
    return Case(arguments, lambda world: damage.foreign(world / name, own))
