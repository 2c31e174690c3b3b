"""A sweep in one picture: every score over one key, each stretched to the same height, with its range beside it.

This is how the large-learning-rate paper draws its Figures 1, 3 to 7 and 15 to 19.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from unspur.core.files import require_writable, write_text
from unspur.errors import UnspurError, require
from unspur.report.charts import ticks
from unspur.runs.summary import PointSummary, SweepSummary

# Blue, orange, green, red, violet, brown, pink, grey: told apart by most colour-blind people, and dashed besides.
COLOURS = ("#2563b0", "#d9730d", "#2a8a4a", "#b3261e", "#7b4fb5", "#8a5a2b", "#c4568f", "#6b7280")
DASHES = ("", "7 3", "2 3", "9 3 2 3")
PAPER = ("prunability", "activation compressibility", "CSI", "class separation")  # what the paper's figures show

WIDTH, HEIGHT = 760, 360  # taller where there are many curves to name
LEFT, RIGHT, TOP, BOTTOM = 24, 440, 40, 300
ENTRY = 34  # what a curve's name and range take
LETTER = 7  # pixels that a digit of the axis takes


class Curve(NamedTuple):
    """One score: its means over the grid, and what to write beside it."""

    name: str
    points: tuple[tuple[float, float, float | None], ...]  # place, mean, deviation

    @property
    def low(self) -> float:
        return min(mean for _, mean, _ in self.points)

    @property
    def high(self) -> float:
        return max(mean for _, mean, _ in self.points)

    def write(self, value: float) -> str:
        return f"{100 * value:.3g} %" if self.name.endswith("accuracy") else f"{value:.3g}"


def write_figure(found: SweepSummary, path: Path, names: Sequence[str] | None = None) -> None:
    """Write the picture of a sweep's summary to the SVG file ``path``."""
    check_figure([point["settings"] for point in found["points"]], path)
    text = figure(found, names)
    try:
        write_text(path, text)
    except OSError as error:
        raise _cannot_write(path, error) from None


def check_figure(settings: Sequence[Mapping[str, str]], path: Path) -> None:
    """Refuse, before any run is done, a file or a grid of which there is no picture."""
    if path.suffix.lower() != ".svg":
        raise UnspurError(f"The figure is an SVG; name a file that ends in .svg instead of {path}.")
    _check_grid(settings)
    require_writable(path)


def _cannot_write(path: Path, error: OSError) -> UnspurError:
    return UnspurError(f"Cannot write {path} ({error.strerror or error}); name another file.")


def _check_grid(settings: Sequence[Mapping[str, str]]) -> None:
    require(
        len(settings[0]) == 1 and all(_is_number(value) for chosen in settings for value in chosen.values()),
        f"A figure needs a grid over one key whose values are numbers, but this one is over {', '.join(settings[0])}.",
    )


def figure(found: SweepSummary, names: Sequence[str] | None = None) -> str:
    """The picture as SVG; without ``names`` accuracies and, of analysed runs, what the paper shows.

    Points that are not usable (by ``usable.py``, as the paper leaves such rates out) are named below it.
    """
    settings = [point["settings"] for point in found["points"]]
    _check_grid(settings)
    (key,) = settings[0]
    usable = [point for point in found["points"] if point["usable"]]
    require(bool(usable), "There is nothing to draw: every point of the grid diverged, failed or lost 25 points.")
    curves = [_curve(name, key, usable) for name in names or _usual(usable)]
    left_out = [point["settings"][key] for point in found["points"] if not point["usable"]]
    return _draw(f"{found['method']} on {found['dataset']}, {found['arch']}", key, curves, left_out)


def _usual(points: Sequence[PointSummary]) -> list[str]:
    """The first test set's accuracy, or the unbiased one's, and the paper's figures; without these all accuracies."""
    names = [name for name in points[0]["scores"] if all(name in point["scores"] for point in points)]
    tests = [n for n in names if n.endswith(" accuracy") and n.count(" ") == 1 and n != "training accuracy"]
    first = ["unbiased accuracy"] if "unbiased accuracy" in tests else tests[:1]
    own = [name for name in names if name in PAPER]
    return [*first, *own] if own else tests


def _curve(name: str, key: str, points: Sequence[PointSummary]) -> Curve:
    known = [(float(p["settings"][key]), p["scores"][name]) for p in points if name in p["scores"]]
    require(bool(known), f"No run of this sweep has the score '{name}'.")
    return Curve(name, tuple(sorted((place, s["mean"], s["deviation"]) for place, s in known)))


def _draw(title: str, key: str, curves: Sequence[Curve], left_out: Sequence[str]) -> str:
    places = sorted({place for curve in curves for place, _, _ in curve.points})
    across, marks = _axis(places)
    height = max(HEIGHT, TOP + ENTRY * len(curves) + 20)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" '
        f'font-size="13" fill="#1c1f24" role="img" aria-label="{escape(_told(title, key, curves))}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-weight="600">{escape(title)}</text>',
        f'<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="#9aa1ab"/>',
    ]
    lines += [f'<path d="M{across(place):.1f} {BOTTOM}v5" stroke="#9aa1ab"/>' for place in marks]
    for place in _apart(marks, across):
        x = across(place)
        lines.append(f'<text x="{x:.1f}" y="{BOTTOM + 19}" text-anchor="middle" font-size="12">{place:g}</text>')
    note = f"{key}; each curve from its lowest to its highest value"
    note += f"; not usable: {', '.join(left_out)}" if left_out else ""
    lines.append(f'<text x="{LEFT}" y="{HEIGHT - 14}" fill="#4b5260">{escape(note)}</text>')
    for number, curve in enumerate(curves):
        lines += _drawn(curve, number, across)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _drawn(curve: Curve, number: int, across: Callable[[float], float]) -> list[str]:
    """A curve with its points and, at the right, its name and range."""
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    span = curve.high - curve.low

    def down(value: float) -> float:
        return BOTTOM - 8 - (BOTTOM - TOP - 16) * ((value - curve.low) / span if span else 0.5)

    line = " ".join(f"{across(place):.1f},{down(mean):.1f}" for place, mean, _ in curve.points)
    style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
    drawn = [f'<polyline points="{line}" {style}/>']
    for place, mean, deviation in curve.points:
        told = f"{curve.name} {curve.write(mean)}" + ("" if deviation is None else f" ± {curve.write(deviation)}")
        dot = f'<circle cx="{across(place):.1f}" cy="{down(mean):.1f}" r="3.5" fill="{colour}">'
        drawn.append(f"{dot}<title>{escape(f'{place:g}: {told}')}</title></circle>")
    y = TOP + 14 + ENTRY * number
    drawn.append(f'<path d="M{RIGHT + 24} {y - 4}h26" {style}/>')
    drawn.append(f'<text x="{RIGHT + 58}" y="{y}">{escape(curve.name)}</text>')
    span_text = f"{curve.write(curve.low)} to {curve.write(curve.high)}"
    drawn.append(f'<text x="{RIGHT + 58}" y="{y + 15}" font-size="12" fill="#4b5260">{span_text}</text>')
    return drawn


def _axis(places: Sequence[float]) -> tuple[Callable[[float], float], list[float]]:
    """Where a value lies from left to right, and which values to write: by ratios where they span more than ten."""
    low, high = places[0], places[-1]
    ratios = low > 0 and high > 10 * low

    def part(place: float) -> float:
        if high == low:
            return 0.5
        return math.log(place / low) / math.log(high / low) if ratios else (place - low) / (high - low)

    marks = list(places) if ratios or len(places) <= 6 else [mark for mark in ticks(low, high) if low <= mark <= high]
    return lambda place: LEFT + 14 + part(place) * (RIGHT - LEFT - 28), marks


def _apart(marks: Sequence[float], across: Callable[[float], float]) -> list[float]:
    """The marks whose numbers can be written without touching: the first, the last, and what fits between them.

    >>> _apart([0.01, 0.2549, 0.35, 0.45, 0.55], lambda mark: 1000 * mark)
    [0.01, 0.2549, 0.35, 0.45, 0.55]
    >>> _apart([0.01, 0.2549, 0.35, 0.45, 0.55], lambda mark: 200 * mark)
    [0.01, 0.2549, 0.55]
    """

    def touch(one: float, other: float) -> bool:
        return abs(across(one) - across(other)) < LETTER * (len(f"{one:g}") + len(f"{other:g}")) / 2 + LETTER

    kept = [marks[0]]
    for mark in marks[1:-1]:
        if not touch(mark, kept[-1]) and not touch(mark, marks[-1]):
            kept.append(mark)
    return kept if marks[-1] == kept[-1] else [*kept, marks[-1]]


def _told(title: str, key: str, curves: Sequence[Curve]) -> str:
    ends = [(curve, curve.points[0][1], curve.points[-1][1]) for curve in curves]
    ranges = [f"{curve.name} from {curve.write(begin)} to {curve.write(end)}" for curve, begin, end in ends]
    first, last = curves[0].points[0][0], curves[0].points[-1][0]
    return f"{title}. As {key} goes from {first:g} to {last:g}: {'; '.join(ranges)}."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
