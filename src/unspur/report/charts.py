"""Training curves: where every line, tick and label of a small chart goes; the template draws them as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

FIRST = ("loss", "accuracy", "lr", "kept", "val_accuracy", "val_mined_accuracy", "val_other_accuracy")  # then the rest
NAMES = {
    "lr": "learning rate",
    "loss_ratio": "loss of conflicting samples, largest share",
    "kept": "share of weights kept",
    "val_accuracy": "validation accuracy",
    "val_mined_accuracy": "validation accuracy, mined",
    "val_other_accuracy": "validation accuracy, others",
}
STEPPED = {  # what is noted step by step
    "loss_ratios": "loss of conflicting samples, share",
    "neuron_uses": "the neuron's spurious use",
    "neuron_changes": "the neuron's change since the look before",
}
PARTS = 100  # of a curve over steps, each drawn as the mean of its steps
COUNTED = ("epoch", "step")  # what a horizontal axis may count: the first that a stage's lines have


class Frame(NamedTuple):
    """A chart's size, and the edges of the part that the axes enclose."""

    width: int = 320
    height: int = 198
    left: int = 46
    right: int = 308
    top: int = 12
    bottom: int = 160


FRAME = Frame()


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    title: str


@dataclass(frozen=True)
class Chart:
    """One quantity over the epochs or steps of one stage, in the chart's own coordinates."""

    title: str
    points: tuple[Point, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    summary: str  # what a person who cannot see the chart is told
    along: str = "epoch"  # what the horizontal axis counts

    @property
    def line(self) -> str:
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


@dataclass(frozen=True)
class StageCharts:
    stage: str
    charts: tuple[Chart, ...]
    sampled: bool  # it learnt which weights to keep, by sampling


def stage_charts(lines: Sequence[Mapping[str, Any]]) -> tuple[StageCharts, ...]:
    """The charts of every stage in ``lines``, the entries of metrics.jsonl."""
    stages: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        stages.setdefault(str(line["stage"]), []).append(line)
    return tuple(StageCharts(stage, _charts(own), any("kept" in line for line in own)) for stage, own in stages.items())


def _charts(lines: Sequence[Mapping[str, Any]]) -> tuple[Chart, ...]:
    along = next((name for name in COUNTED if any(name in line for line in lines)), COUNTED[0])
    keys = dict.fromkeys(key for line in lines for key in line if key not in ("stage", along))
    ordered = [key for key in FIRST if key in keys] + [key for key in keys if key not in FIRST]
    charts = []
    for key in ordered:
        values = [(float(line.get(along, number)), line.get(key)) for number, line in enumerate(lines, 1)]
        if points := [(x, float(y)) for x, y in values if isinstance(y, int | float) and math.isfinite(y)]:
            charts.append(_chart(key, points, along))
    for key, title in STEPPED.items():
        if points := _parts([value for line in lines for value in line.get(key) or ()]):
            charts.append(_chart(title, points, "step"))
    return tuple(charts)


def _parts(noted: Sequence[float | None]) -> list[tuple[float, float]]:
    """A quantity of every step as at most 100 points: the last step of each part, and the mean over the part.

    >>> _parts([0.5, None, 1.0])
    [(1.0, 0.5), (3.0, 1.0)]
    """
    length = max(1, math.ceil(len(noted) / PARTS))
    points = []
    for begin in range(0, len(noted), length):
        known = [value for value in noted[begin : begin + length] if value is not None]
        if known:
            points.append((float(min(begin + length, len(noted))), sum(known) / len(known)))
    return points


def share_chart(title: str, points: Sequence[tuple[float, float]], along: str = "share") -> Chart:
    """A chart of something over a share, or something else from 0 to 1."""
    return _chart(title, points, along)


def stage_chart(title: str, points: Sequence[tuple[str, float]]) -> Chart:
    """A chart of a share after each of some named stages."""
    plain = _chart(title, [(float(place), value) for place, (_, value) in enumerate(points)], "stage")
    # In the middle of equal parts of the axis, so that names have room at both ends.
    width = (FRAME.right - FRAME.left) / len(points)
    places = [FRAME.left + (number + 0.5) * width for number in range(len(points))]
    values = [f"{100 * value:.4g} %" for _, value in points]
    drawn = zip(places, plain.points, points, values, strict=True)
    return replace(
        plain,
        points=tuple(Point(x, point.y, f"{name}: {value}") for x, point, (name, _), value in drawn),
        x_ticks=tuple(Tick(x, name) for x, (name, _) in zip(places, points, strict=True)),
        summary=f"{title}: " + ", ".join(f"{v} after {name}" for (name, _), v in zip(points, values, strict=True)),
    )


def _chart(key: str, points: Sequence[tuple[float, float]], along: str) -> Chart:
    name, share = NAMES.get(key, key.replace("_", " ")), "accuracy" in key or key == "kept"
    y_values = ticks(*_span([y for _, y in points], share))
    x_values = [x for x in ticks(points[0][0], points[-1][0]) if points[0][0] <= x <= points[-1][0]]
    when = "at"
    if along in COUNTED:
        x_values, when = [x for x in x_values if x == int(x)], "after"

    def write(value: float) -> str:
        return f"{100 * value:.4g} %" if share else f"{value:.4g}"

    def across(x: float) -> float:
        first, last = points[0][0], points[-1][0]
        part = (x - first) / (last - first) if last > first else 0.5
        return FRAME.left + part * (FRAME.right - FRAME.left)

    def down(y: float) -> float:
        part = (y_values[-1] - y) / (y_values[-1] - y_values[0])
        return FRAME.top + part * (FRAME.bottom - FRAME.top)

    return Chart(
        title=name,
        points=tuple(Point(across(x), down(y), f"{along} {x:g}: {name} {write(y)}") for x, y in points),
        x_ticks=tuple(Tick(across(x), f"{x:g}") for x in x_values or [points[0][0]]),
        y_ticks=tuple(Tick(down(y), write(y)) for y in y_values),
        summary=f"{name}: {write(points[0][1])} {when} {along} {points[0][0]:g}, "
        f"{write(points[-1][1])} {when} {along} {points[-1][0]:g}",
        along=along,
    )


def _span(values: Sequence[float], share: bool) -> tuple[float, float]:
    """What the vertical axis must hold: shares up to 1, everything else from 0 unless it goes below."""
    if share:
        return min(0.99, *values), 1.0
    return min(0.0, *values), max(0.0, *values)


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers that enclose [low, high], about as many as asked for.

    >>> ticks(0, 0.73)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    >>> ticks(0.987, 1)
    [0.985, 0.99, 0.995, 1.0]
    """
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * about >= span * 0.9)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [round(number * step, 12) for number in range(first, last + 1)]
