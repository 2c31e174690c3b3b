"""repair.json: what a repair has done so far, written after each step, so that a stopped repair can be resumed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypedDict

from filelock import FileLock, Timeout

from unspur.core.files import read_json, writable, write_json
from unspur.core.shapes import checked
from unspur.core.unfinished import remove_partial
from unspur.errors import UnspurError
from unspur.version import __version__

REPAIR, PAGE, RUNS, AUDITS, EVIDENCE = "repair.json", "repair.html", "runs", "audits", "evidence"

Status = Literal["done", "diverged", "failed", "out of time", "does not fit"]
EvidenceKind = Literal["swapped", "mined", "classes", "groups"]


class ScoresJSON(TypedDict):
    """Shares of validation images that a model gets right; None where there is no such image."""

    ordinary: float  # images as they are
    swapped: float | None  # the mean over classes, with the cue of another class
    removed: float | None  # with the cue taken away
    evidence: float | None  # what the choice was made by
    by_class: dict[str, list[float | None]]  # of each class: ordinary, swapped


class DifferenceJSON(TypedDict):
    mean: float  # over images, of a candidate minus the baseline
    error: float  # its standard error
    p: float  # that of random signs


class TriedJSON(TypedDict):
    """A candidate."""

    name: str  # of the method, or `swap, all layers`
    status: Status  # done, or why not
    reason: str | None  # why it is not done, or why it was chosen or not
    run: str | None  # its folder
    command: str  # that makes just this run
    seconds: float  # that it took
    expected_seconds: float  # that it was expected to take
    scores: ScoresJSON | None  # None: it is not done
    gain: DifferenceJSON | None  # on the evidence, over the baseline
    ordinary: DifferenceJSON | None  # on ordinary images, over the baseline


class BaselineJSON(TypedDict):
    """What candidates are compared with."""

    run: str  # its folder
    yours: bool  # whether it was given, and not trained here
    command: str  # that makes just this run
    seconds: float  # that it took
    scores: ScoresJSON | None  # None: not scored yet


class RelianceChange(TypedDict):
    """The swap test of one finding, before and after."""

    what: str  # the finding
    before: float | None  # how often predictions follow the cue more than the control
    after: float | None  # the same of the result
    after_ci95: list[float] | None  # of that


class RepairJSON(TypedDict):
    """Everything about a repair."""

    target: str  # the data as `unspur train` takes them
    seed: int  # of everything random
    margin: float  # the largest share of ordinary images that may be lost
    verdict: str | None  # of the first audit
    finding: str | None  # the audit's sentence
    audit: str | None  # its folder
    cues: list[str]  # that were swapped
    evidence: EvidenceKind | None  # what the choice was made by
    images: int  # that the choice was made by
    baseline: BaselineJSON | None  # None: not there yet
    tried: list[TriedJSON]  # every candidate
    chosen: str | None  # the name of the candidate; None: the baseline is kept
    run: str | None  # the folder of the result
    sentence: str | None  # None: the repair has not ended
    second_audit: str | None  # of the result, its folder
    second_verdict: str | None  # of that
    reliance: list[RelianceChange]  # finding by finding
    notes: list[str]  # what a reader must know
    seconds: float  # in all
    next: list[str]  # the commands that usually come next
    version: str  # of unspur


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


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock a repair's folder; it is an error if another process works on it."""
    writable(folder)
    remove_partial(folder)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UnspurError(f"Another process works on {folder}; wait for it to end.") from None
    try:
        yield
    finally:
        lock.release()
