"""Every cell of the four papers' tables that can be run, ours beside theirs; see make_results.py.

A cell is **at** its published value within one published deviation, or where none is given when it rounds to the same
printed digits; else **above** (better) or **below** (worse). Of errors the smaller is the better. Coverage is set to a
target by a threshold: it is shown, and neither judged nor counted. Other people's methods, which are quoted and not
run, are not listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from large_lr_tables import SCORES, accuracy_name, published

from unspur.papers.large_lr import HEADS
from unspur.papers.reproduce import TABLES
from unspur.papers.table import Abstaining, Cell, Score, Table

RESULTS = Path(__file__).parents[1] / "results"
# The same published cells again, in parts or by another protocol: not counted twice.
PARTS = (
    "large_lr/table1-*", "large_lr/table2-*", "dcwp/table1-short", "dcwp/table1-mining", "dcwp/table3-short",
    "ule/table1-paper",
)  # fmt: skip
# Sets whose images are made here or free to download without an account; all others need one.
AT_HAND = (
    "biased_mnist", "mnist", "mnist_sc", "colored_mnist", "double_mnist", "mnist_cifar", "corrupted_cifar10", "cifar10",
    "parity", "moon_star",
)  # fmt: skip


class Departure(NamedTuple):
    """Where a run is not the paper's: another network or other images, or only another training."""

    instead: str = ""
    training: str = ""

    @property
    def words(self) -> str:
        return "; ".join(part for part in self if part)


class Source(NamedTuple):
    """A file of results/ that has values of a table, and what its runs are instead of the paper's."""

    file: str
    departure: Departure = Departure()
    cells: str = "*"  # a pattern of ROW|COLUMN


TEN_EPOCHS = "10 epochs instead of 100"
SHORT_CIFAR = Departure("CIFAR-10 as JPEG", "8 epochs instead of 300, one seed")
SHORT = "400 steps for the masks, one seed"
SMALL_CIFAR = Departure("without ImageNet weights, CIFAR-10 as JPEG", f"6 epochs, {SHORT}")
SMALLER_CIFAR = Departure("without ImageNet weights, CIFAR-10 as JPEG", f"3 epochs, {SHORT}")
SIX_EPOCHS = Departure(training=f"6 epochs, {SHORT}")
FROM_ZERO = "masks from theta = 0 instead of 1.5"
HALF = f"{FROM_ZERO}, half the steps of mask training, a third of those of fine-tuning, one seed"
ONE_EPOCH = "one epoch instead of 300, lambda below the paper's grid"
SOURCES: dict[str, tuple[Source, ...]] = {  # of a table whose file is not called as it is; the first that has a value
    "masktune/table4": (Source("masktune-table4", SHORT_CIFAR),),
    "masktune/table5": (Source("masktune-table5-authors", Departure(training=TEN_EPOCHS)),),
    "masktune/table6": (Source("masktune-table6", Departure(training=TEN_EPOCHS)),),
    "masktune/table7": (Source("masktune-table7", SHORT_CIFAR),),
    "ule/table1": (Source("ule-table1", Departure(training=ONE_EPOCH)),),
    "dcwp/table1": (
        Source("dcwp-table1", Departure(training=f"{FROM_ZERO}, biased model by SGD at a constant rate"), "*|DCWP"),
        Source("dcwp-table1", cells="CMNIST, 1.0 %|MRM"),  # an older run, whose masks began at the paper's 1.5
        Source("dcwp-table1", Departure(training=FROM_ZERO), "*|MRM"),
        Source("dcwp-table1", cells="*|ERM"),
        Source("dcwp-table1-short-cifar10c", SMALL_CIFAR),
        Source("dcwp-table1-short", SIX_EPOCHS),
    ),
    "dcwp/table3": (Source("dcwp-table3-short", SMALLER_CIFAR),),
    "dcwp/table2": (Source("dcwp-table2", Departure(training=HALF)),),
    "large_lr/table2": (
        Source(
            "large_lr-table2-colored_mnist",
            Departure("a narrow CNN on 10,000 images in the place of ResNet-18 on 60,000"),
        ),
    ),
}
FULLY_CONNECTED = Departure(training="rates from 0.0047 instead of 0.001, at most 100 epochs")
SWEEPS_INSTEAD = {  # by the end of a sweep's name; the first that fits
    "moon_star-fcn": Departure("an easier set: the paper does not give its number of images"),
    "parity-fcn": Departure("numbers of bits that come near the published accuracies: the paper does not give them"),
    "_mnist-fcn": FULLY_CONNECTED,
    "mnist_cifar-cnn": Departure(
        "a CNN with a quarter of the channels, CIFAR-10 as JPEG", "four rates from 0.0038, 30 epochs, one seed"
    ),
    "cnn": Departure("a CNN with a quarter of the channels"),
    "resnet18": Departure("10,000 images", "three rates, at most 20 epochs, one seed"),
}
DRAWN = {  # which of two readings of the squares a table has here: notes/masktune.md has both of both
    "masktune/table5": " The squares are drawn as the authors' code draws them; as the text says, see README.md.",
    "masktune/table6": " The square is drawn as the text says; as the authors' code draws it, see README.md.",
}
CONTROL = "non-accumulative "  # Table 5's masks that do not add up: a control that is to fail
REPAIRS = {"masktune": "MaskTune", "ule": "ULE", "dcwp": "DCWP"}  # the papers' own methods


class Ours(NamedTuple):
    """A measured value, over so many seeds, and what stands in the paper's place."""

    value: float
    seeds: int
    departure: Departure


class Line(NamedTuple):
    """A cell as a line of the page."""

    table: str
    cell: Cell
    ours: Ours | None
    verdict: str  # at, above, below, not judged, or not run
    reason: str


def verdict(ours: float, theirs: float, deviation: float | None, *, less_is_better: bool = False) -> str:
    """Whether a value is at the published one, above (better) or below (worse).

    >>> verdict(97.2, 97.0, 0.1), verdict(96.95, 97.0, 0.1), verdict(96.8, 97.0, 0.1)
    ('above', 'at', 'below')
    >>> verdict(98.6, 99, None), verdict(98.4, 99, None), verdict(5.0, 6.0, None, less_is_better=True)
    ('at', 'below', 'above')
    """
    gap = (theirs - ours) if less_is_better else (ours - theirs)
    half_a_digit = 0.5 * 10.0 ** Decimal(f"{theirs:g}").as_tuple().exponent  # type: ignore[operator]
    allowed = half_a_digit if deviation is None else deviation
    if abs(gap) <= allowed + 1e-9:
        return "at"
    return "above" if gap > 0 else "below"


def _read(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def _sweep_values() -> dict[tuple[str, str], Ours]:
    """Table 1 of the large rates from its sweeps: the lowest and highest mean over usable rates."""
    heads = {"unbiased accuracy": "Test Acc.", "class separation": "Class Sep.", **HEADS}
    found = {}
    for name, (data, model, _) in published().items():
        sweep = _read(f"large-lr/{name}")
        usable = [point["scores"] for point in sweep["points"] if point["usable"]] if sweep else []
        departure = next((one for end, one in SWEEPS_INSTEAD.items() if name.endswith(end)), Departure())
        for score in SCORES if usable else ():
            own = accuracy_name(usable[0]) if score == "unbiased accuracy" else score
            spreads = sorted((scores[own] for scores in usable), key=lambda spread: float(spread["mean"]))
            for word, spread in (("min", spreads[0]), ("max", spreads[-1])):
                value = spread["mean"] * (100 if score.endswith("accuracy") else 1)
                found[f"{data}, {model}", f"{heads[score]} {word}"] = Ours(value, spread["n"], departure)
    return found


def measured(table: Table) -> dict[tuple[str, str], Ours]:
    """The values that results/ has of a table's cells, by row and column."""
    if table.key == "large_lr/table1":
        return _sweep_values()
    found: dict[tuple[str, str], Ours] = {}
    for source in SOURCES.get(table.key, (Source(table.key.replace("/", "-")),)):
        for cell in (_read(source.file) or {"cells": ()})["cells"]:
            place = cell["row"], cell["column"]
            if cell["values"] and fnmatch("|".join(place), source.cells):
                found.setdefault(place, Ours(cell["ours"], len(cell["values"]), source.departure))
    return found


def why_not_run(cell: Cell) -> str:
    """What a cell that was not run waits for."""
    sets = sorted({setup.data for setup in cell.setups} - set(AT_HAND))
    if sets:
        return f"needs {', '.join(sets)}"
    if any(setting.startswith("arch.weights=") for setup in cell.setups for setting in setup.settings):
        return "needs published weights"
    return "time"


def reason_of(reasons: Mapping[str, str], table: str, cell: Cell) -> str:
    """Why a cell is below: the first pattern of `TABLE|ROW|COLUMN` in results/shortfalls.json that fits."""
    name = f"{table}|{cell.row}|{cell.column}"
    return next((why for pattern, why in reasons.items() if fnmatch(name, pattern)), "")


def is_coverage(cell: Cell) -> bool:
    """Whether a cell is a coverage, which is no success: a threshold sets it to a target on validation images."""
    return isinstance(cell.measure, Abstaining) and cell.measure.field == "coverage"


def number_of(table: str, cell: Cell) -> tuple[Any, ...]:
    """What two cells share that are the same published number: their runs, or plain training before either's."""
    if isinstance(cell.measure, Score) and cell.measure.stage == "erm":
        return table, cell.row, cell.measure, cell.published
    return cell.setups, cell.measure, cell.pick


def lines() -> Iterator[Line]:
    """Every cell that has a published value and a configuration to run; one that is printed twice is the first's."""
    reasons: dict[str, str] = _read("shortfalls") or {}
    printed = set()
    for key, table in TABLES.items():
        if any(fnmatch(key, part) for part in PARTS):
            continue
        values = measured(table)
        for cell in table.cells:
            number = number_of(key, cell)
            if not cell.setups or cell.published is None or number in printed:
                continue
            printed.add(number)
            ours = values.get((cell.row, cell.column))
            if ours is None:
                yield Line(key, cell, None, "not run", why_not_run(cell))
                continue
            less = cell.column.endswith("error")
            judged = verdict(ours.value, cell.published, cell.deviation, less_is_better=less)
            word = "not judged" if is_coverage(cell) else judged
            parts = [ours.departure.words, reason_of(reasons, key, cell) if word == "below" else ""]
            yield Line(key, cell, ours, word, "; ".join(part for part in parts if part))


def page() -> list[str]:
    """A table for each published one, and the shares at the end."""
    found, text = list(lines()), []
    for key in dict.fromkeys(line.table for line in found):
        text += ["", f"## {key}", "", f"{TABLES[key].caption}.{DRAWN.get(key, '')}", ""]
        text += ["| row | column | published | ours | verdict | reason |", "| --- |" + " --- |" * 5]
        text += [_row(line) for line in found if line.table == key]
    return [*text, "", "## Sum", "", *_sum(found)]


def _row(line: Line) -> str:
    cell = line.cell
    theirs = f"{cell.published:g}" + (f" ± {cell.deviation:g}" if cell.deviation is not None else "")
    ours = "" if line.ours is None else f"{line.ours.value:.4g} ({line.ours.seeds})"
    return f"| {cell.row} | {cell.column} | {theirs} | {ours} | {line.verdict} | {line.reason} |"


def kind_of(line: Line) -> str:
    """Whether a cell has a paper's own method, another one (plain training and controls, too) or is of large rates."""
    (method, *_), measure = {setup.method for setup in line.cell.setups}, line.cell.measure
    if line.table.startswith("large_lr/"):
        return "large rates: lowest and highest values"
    plain = (isinstance(measure, Score) and measure.stage == "erm") or line.cell.column.startswith(("SR ", CONTROL))
    return "other methods, plain training and controls" if plain or method not in REPAIRS else REPAIRS[method]


def _sum(every: list[Line]) -> Iterator[str]:
    found = [line for line in every if not is_coverage(line.cell)]
    run = [(line, line.ours.departure) for line in found if line.ours]
    closest = [(line, departure) for line, departure in run if not departure.instead]
    trained_as_printed = [line for line, departure in closest if not departure.training]
    trained_otherwise = [line for line, departure in closest if departure.training]
    kinds = {
        "with the paper's network, images and schedule": trained_as_printed,
        "with another training (schedule, start of the masks, range of rates)": trained_otherwise,
        "with another network or other images": [line for line, departure in run if departure.instead],
        "all that were run": [line for line, _ in run],
    }
    yield from _shares(kinds)
    yield from ("", "Those with the paper's network and images, by what they are of:", "")
    what: dict[str, list[Line]] = {}
    for line, _ in closest:
        what.setdefault(kind_of(line), []).append(line)
    yield from _shares(what)
    not_run = [line for line in found if line.ours is None]
    waiting = sum(line.reason == "time" for line in not_run)
    yield ""
    yield (
        f"Of {len(found)} cells {len(not_run)} were not run: {waiting} could be run with the data at hand and wait for "
        f"time, {len(not_run) - waiting} need data or weights that are not."
    )


def _shares(kinds: Mapping[str, list[Line]]) -> Iterator[str]:
    """How many cells of each kind are at, above or below their published values."""
    yield "| cells | run | at | above | below | at or above |"
    yield "| --- |" + " --- |" * 5
    for name, own in kinds.items():
        counts = [sum(line.verdict == word for line in own) for word in ("at", "above", "below")]
        share = f"{100 * sum(counts[:2]) / len(own):.0f} %" if own else ""
        yield f"| {name} | {len(own)} | {' | '.join(map(str, counts))} | {share} |"
