"""What each method scores on one data set, as a picture: the best on top, plain training as a line through all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unspur.report.charts import Tick, ticks
from unspur.report.section import Section
from unspur.runs.comparison import Block, Row, Score, telling_score
from unspur.runs.entries import PLAIN

LEFT, RIGHT = 170, 700  # the edges of the scale, in the picture's own coordinates
TOP, STEP = 34, 20  # where the first line lies, and the distance to the next
CALLED: dict[Score, str] = {"worst": "worst group", "mean": "mean over groups"}


@dataclass(frozen=True)
class DotLine:
    """A method: where its scores lie, and whose group labels it reads."""

    method: str
    reads: str
    y: int
    seeds: tuple[float, ...]  # of each, chosen without groups
    without: float  # their mean
    with_groups: float | None  # the mean where groups chose
    title: str


@dataclass(frozen=True)
class Dots:
    """All methods of a data set, the best first."""

    score: str
    lines: tuple[DotLine, ...]
    ticks: tuple[Tick, ...]
    plain: float | None
    summary: str  # what a person who cannot see the picture is told

    @property
    def bottom(self) -> int:
        return TOP + STEP * len(self.lines)


def view(block: Block) -> Dots:
    score = telling_score(block)
    rows = sorted(_scored(block, score), key=lambda row: _mean(row, score), reverse=True)
    values = ticks(0.0, max(seed for row in rows for seed in _seeds(row, score)), about=5)

    def across(value: float) -> float:
        return LEFT + value / values[-1] * (RIGHT - LEFT)

    plain = next((_mean(row, score) for row in rows if row["method"] == PLAIN), None)
    best = rows[0]
    summary = f"{CALLED[score]}: {best['method']} {_written(_mean(best, score))}"
    summary += "" if plain is None else f", plain training {_written(plain)}"
    return Dots(
        CALLED[score],
        tuple(_line(row, score, TOP + STEP * number, across) for number, row in enumerate(rows)),
        tuple(Tick(across(value), f"{100 * value:.4g} %") for value in values),
        None if plain is None else across(plain),
        summary,
    )


def _line(row: Row, score: Score, y: int, across: Callable[[float], float]) -> DotLine:
    known, seeds = row[score]["groups"], _seeds(row, score)
    title = f"{row['method']}: {_written(_mean(row, score))}"
    title += f" ({', '.join(map(_written, seeds))})" if len(seeds) > 1 else ""
    title += f"; chosen with groups {_written(known['mean'])}" if known else ""
    return DotLine(
        row["method"],
        row["groups"],
        y,
        tuple(map(across, seeds)),
        across(_mean(row, score)),
        across(known["mean"]) if known else None,
        title,
    )


def _scored(block: Block, score: Score) -> list[Row]:
    return [row for row in block["rows"] if row[score]["none"]]


def _seeds(row: Row, score: Score) -> Sequence[float]:
    return [seed for chosen in row["chosen"]["none"] if (seed := chosen[score]) is not None]


def _mean(row: Row, score: Score) -> float:
    spread = row[score]["none"]
    assert spread is not None  # `_scored` left the others out
    return spread["mean"]


def _written(value: float) -> str:
    return f"{100 * value:.1f} %"


def _several(block: Block) -> bool:
    return len(_scored(block, telling_score(block))) > 1


METHOD_DOTS: Section[Block] = Section("method_dots", view, _several)
