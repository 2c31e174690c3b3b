"""What each method scores on one data set."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.section import Section
from unspur.runs.comparison import Block, Row, Spread


@dataclass(frozen=True)
class MethodScores:
    """A method's scores by both choices, and its cost in units of plain training."""

    method: str
    groups: str
    scores: tuple[Spread | None, ...]  # worst group with and without groups, then the mean over groups
    cost: float | None
    diverged: int


@dataclass(frozen=True)
class Scores:
    """All methods on a data set, the best first, and those that could not run there."""

    dataset: str
    test: str
    arch: str
    rows: tuple[MethodScores, ...]
    left_out: tuple[tuple[str, str], ...]


def view(block: Block) -> Scores:
    rows = [row for row in block["rows"] if not row["left_out"]]
    rows.sort(key=_best, reverse=True)
    left_out = tuple((row["method"], row["left_out"]) for row in block["rows"] if row["left_out"])
    return Scores(block["dataset"], block["test"], block["arch"], tuple(map(_scores, rows)), left_out)


def _best(row: Row) -> list[float]:
    return [score["mean"] if score else -1.0 for score in (row["worst"]["none"], row["mean"]["none"])]


def _scores(row: Row) -> MethodScores:
    scores = (row["worst"]["groups"], row["worst"]["none"], row["mean"]["groups"], row["mean"]["none"])
    return MethodScores(row["method"], row["groups"], scores, row["cost"], row["diverged"])


METHOD_SCORES: Section[Block] = Section("method_scores", view)
