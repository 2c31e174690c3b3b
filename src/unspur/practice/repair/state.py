"""repair.json: what a repair has done so far, written after each step, so that a repair that is stopped goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypedDict

from unspur.core.files import read_json, write_json
from unspur.core.shapes import checked
from unspur.version import __version__

REPAIR, PAGE, RUNS, AUDITS, EVIDENCE = "repair.json", "repair.html", "runs", "audits", "evidence"

Status = Literal["done", "diverged", "failed", "out of time", "does not fit"]
EvidenceKind = Literal["swapped", "mined", "classes", "groups"]


class ScoresJSON(TypedDict):
    """Shares of validation images that a model gets right; None where there is no such image."""

    ordinary: float
    swapped: float | None  # the mean over classes, with the cue of another class
    removed: float | None  # with the cue taken away
    evidence: float | None  # what the choice was made by
    by_class: dict[str, list[float | None]]  # of each class: ordinary, swapped


class DifferenceJSON(TypedDict):
    mean: float
    error: float
    p: float


class TriedJSON(TypedDict):
    """A candidate."""

    name: str
    status: Status
    reason: str | None  # why it is not done, or why it was chosen or not
    run: str | None
    command: str
    seconds: float
    expected_seconds: float
    scores: ScoresJSON | None
    gain: DifferenceJSON | None  # on the evidence, over the baseline
    ordinary: DifferenceJSON | None


class BaselineJSON(TypedDict):
    """What candidates are compared with."""

    run: str
    yours: bool  # whether it was given, and not trained here
    command: str
    seconds: float
    scores: ScoresJSON | None


class RelianceChange(TypedDict):
    """The swap test of one finding, before and after."""

    what: str
    before: float | None
    after: float | None
    after_ci95: list[float] | None


class RepairJSON(TypedDict):
    """Everything about a repair."""

    target: str
    seed: int
    margin: float
    verdict: str | None
    finding: str | None  # the audit's sentence
    audit: str | None
    cues: list[str]
    evidence: EvidenceKind | None
    images: int  # that the choice was made by
    baseline: BaselineJSON | None
    tried: list[TriedJSON]
    chosen: str | None  # the name of the candidate; None: the baseline is kept
    run: str | None  # the folder of the result
    sentence: str | None  # None: the repair has not ended
    second_audit: str | None
    second_verdict: str | None
    reliance: list[RelianceChange]
    notes: list[str]
    seconds: float
    next: list[str]
    version: str


def new_state(target: str, seed: int, margin: float) -> RepairJSON:
    """A repair that has not begun."""
    return {
        "target": target,
        "seed": seed,
        "margin": margin,
        "verdict": None,
        "finding": None,
        "audit": None,
        "cues": [],
        "evidence": None,
        "images": 0,
        "baseline": None,
        "tried": [],
        "chosen": None,
        "run": None,
        "sentence": None,
        "second_audit": None,
        "second_verdict": None,
        "reliance": [],
        "notes": [],
        "seconds": 0.0,
        "next": [],
        "version": __version__,
    }


def read_state(folder: Path) -> RepairJSON | None:
    """What is stored, or None where nothing is."""
    path = folder / REPAIR
    if not path.exists():
        return None
    state: RepairJSON = checked(read_json(path), RepairJSON, str(path))
    return state


def write_state(folder: Path, state: RepairJSON) -> None:
    """Write the whole state, atomically."""
    write_json(folder / REPAIR, state)
