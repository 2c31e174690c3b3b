"""What a page about a repair shows: plain values and pictures."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from unspur.report.scores import Share


@dataclass(frozen=True)
class ScoreRow:
    """One figure of the model before and, if it was replaced, after."""

    what: str
    before: Share | None
    after: Share | None


@dataclass(frozen=True)
class TriedRow:
    """A candidate: what became of it, and how it compares with the baseline in points."""

    name: str
    outcome: str
    chosen: bool
    swapped: float | None
    ordinary: float | None
    gain: str | None
    change: str | None
    seconds: float
    command: str


@dataclass(frozen=True)
class PictureRow:
    """An image (bytes), with its cue swapped, maps of both models, and what both say of the swapped image."""

    image: Tensor
    changed: Tensor
    before: Tensor  # map of the image
    after: Tensor
    truth: str
    donor: str
    said_before: str
    said_after: str


@dataclass(frozen=True)
class RelianceRow:
    """The swap test of one finding before and after."""

    what: str
    before: float | None
    after: Share | None


@dataclass(frozen=True)
class RepairContext:
    """A repair."""

    name: str
    sentence: str
    repaired: bool
    finding: str
    facts: tuple[tuple[str, str], ...]
    next: tuple[str, ...]
    result: str  # "swap", or "your model"
    scores: tuple[ScoreRow, ...]
    classes: tuple[ScoreRow, ...]
    classes_swapped: tuple[ScoreRow, ...]
    reliance: tuple[RelianceRow, ...]
    second: str | None  # the second audit's verdict
    tried: tuple[TriedRow, ...]
    explained: str  # what a map shows
    pictures: tuple[PictureRow, ...]
    notes: tuple[str, ...]
