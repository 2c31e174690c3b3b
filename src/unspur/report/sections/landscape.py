"""The plane around a solution (large-LR, Figure 9) as coloured squares, one picture for each measure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unspur.evaluation.figures import Plane as Values
from unspur.evaluation.figures import Surroundings
from unspur.report.pictures import shades

SIDE = 180  # of a picture, in its own coordinates
TITLES = {
    "loss": "training loss, colours by ratio",
    "accuracy": "test accuracy",
    "attribution": "spurious use: share of attribution on the shortcut",
    "selectivity": "spurious use: mean bias-selectivity",
}
LEAST = 1e-6  # smaller losses have the colour of this one


@dataclass(frozen=True)
class Square:
    x: float
    y: float
    colour: str
    title: str


@dataclass(frozen=True)
class Plane:
    """One measure: a square for each place, the step between places, and what to write beside it."""

    title: str
    squares: tuple[Square, ...]
    step: float
    low: str
    high: str
    middle: str  # its value at the solution


def planes(found: Surroundings | None) -> tuple[Plane, ...]:
    """The pictures of ``analysis.json``'s surroundings; none where nobody asked for them."""
    if not found:
        return ()
    drawn = [_plane("loss", "loss", found["axis"], found["loss"])]
    drawn.append(_plane("accuracy", "accuracy", found["axis"], found["accuracy"]))
    if found["spurious_use"] and found["spurious_by"]:
        drawn.append(_plane("spurious_use", found["spurious_by"], found["axis"], found["spurious_use"]))
    return tuple(drawn)


def _plane(name: str, title: str, axis: list[float], rows: Values) -> Plane:
    known = [value for row in rows for value in row if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    step = SIDE / len(axis)
    squares = tuple(
        Square(column * step, row * step, _colour(name, value, low, high), f"{a:g}, {b:g}: {_write(name, value)}")
        for row, (a, values) in enumerate(zip(axis, rows, strict=True))
        for column, (b, value) in enumerate(zip(axis, values, strict=True))
    )
    middle = rows[len(axis) // 2][len(axis) // 2]
    return Plane(TITLES[title], squares, step, _write(name, low), _write(name, high), _write(name, middle))


def _colour(name: str, value: float | None, low: float, high: float) -> str:
    """From dark violet (lowest) to pale yellow (highest); grey where there is no value."""
    if value is None:
        return "#9aa1ab"
    if name == "loss":  # spans orders of magnitude
        value, low, high = (math.log(max(number, LEAST)) for number in (value, low, high))
    table = shades()
    part = (value - low) / (high - low) if high > low else 0.0
    red, green, blue = table[round(part * (len(table) - 1)), :3].tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def _write(name: str, value: float | None) -> str:
    if value is None:
        return "not finite"
    return f"{100 * value:.3g} %" if name == "accuracy" else f"{value:.3g}"
