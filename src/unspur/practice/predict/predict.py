"""predict(...): a label for every image, written as it goes; an interrupted command can be resumed."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypedDict

from unspur.core.progress import Progress, ProgressBar, of_stage, silent
from unspur.data.images.workers import Decoders
from unspur.errors import UnspurError, require
from unspur.metrics.selective import require_coverage
from unspur.models.inference import WORTH_CONVERTING
from unspur.practice.engine import Engine
from unspur.practice.predict.abstention import ExpectedJSON
from unspur.practice.predict.calibrate import calibrated
from unspur.practice.predict.classifier import ImageClassifier, open_classifier
from unspur.practice.predict.conformal import ExpectedSetsJSON, require_share
from unspur.practice.predict.inputs import Inputs, Named
from unspur.practice.predict.on_ray import Job, rows_on_ray
from unspur.practice.predict.row_file import RowFile
from unspur.practice.predict.rows import CSV, Row, RowJSON, as_json
from unspur.practice.predict.stream import Rule, rows_of
from unspur.version import __version__

IMAGES = "images"  # the stage of the progress bar


@dataclass(frozen=True)
class Wanted:
    """How images are labelled."""

    top: int = 1  # classes of each row
    batch: int = 64
    coverage: float | None = None  # the share of images to answer; None: all
    audit: Path | None = None  # of a shortcut, whose decisions are not to be trusted
    conformal: float | None = None  # the share of images whose set of labels holds the right one; None: no sets

    def __post_init__(self) -> None:
        require(self.top >= 1, f"--topk must be at least 1 but got {self.top}.")
        require(self.batch >= 1, f"--batch must be at least 1 but got {self.batch}.")
        if self.coverage is not None:
            require_coverage(self.coverage)
        if self.conformal is not None:
            require_share(self.conformal)
        require(
            self.audit is None or self.coverage is not None or self.conformal is not None,
            "--audit says when to abstain, so it needs --coverage, such as --coverage 0.9, or --conformal.",
        )


class AbstentionJSON(TypedDict):
    """Where the threshold comes from and what to expect."""

    coverage: float
    threshold: float
    temperatures: list[float]
    ece_before: float
    ece_after: float
    cue: str | None
    expected: list[ExpectedJSON]


class SetsOfLabelsJSON(TypedDict):
    """Where the sets of labels come from and what to expect."""

    share: float
    floor: float
    cue: str | None
    expected: list[ExpectedSetsJSON]


class Counted(TypedDict):
    """How many images were labelled, and how fast."""

    images: int
    found: int  # rows that were there already
    unreadable: int
    abstained: int
    seconds: float
    images_per_second: float


class Summary(Counted):
    """What was done; ``rows`` only where there is no file for them."""

    model: str
    out: str | None
    abstention: AbstentionJSON | None
    sets: SetsOfLabelsJSON | None
    rows: list[RowJSON] | None


Sink = Callable[[list[Row]], None]


def predict_into(
    model: Path | ImageClassifier,
    given: tuple[str, ...],
    wanted: Wanted,
    out: Path | None,
    *,
    resume: bool = False,
    column: str = "filename",
    engine: Engine = Engine(),  # noqa: B008 (frozen)
    data_dir: Path | None = None,
    stdin: BinaryIO | None = None,
    printed: BinaryIO | None = None,
    bar: ProgressBar | None = None,
    say: Callable[[AbstentionJSON | None, SetsOfLabelsJSON | None], None] = lambda abstention, sets: None,
) -> Summary:
    """Label the images ``given`` and write one row each to ``out``, or to ``printed`` as CSV, or into the summary.

    ``say`` gets a sentence on what to expect before the first image is read.
    """
    require(out is not None or not resume, "--resume goes on with a file; name it with --out.")
    require(out is not None or engine.name == "local", "--engine ray writes to a file; name it with --out.")
    classifier = open_classifier(model, data_dir) if isinstance(model, Path) else model
    inputs = Inputs(given, column, stdin)
    top = min(wanted.top, len(classifier.classes))
    has_sets = wanted.conformal is not None
    file = RowFile(out, top, _about(classifier, wanted), resume, has_sets) if out else None
    rule, abstention, sets = _rule(classifier, wanted, data_dir, bar or silent)
    say(abstention, sets)
    images, total = _some(inputs), inputs.count()
    kept: list[RowJSON] = []
    with contextlib.ExitStack() as stack:
        done, add = 0, _printing(printed, CSV(top, has_sets)) if printed and not file else _collect(kept)
        if file:
            note = {"abstention": abstention, "sets": sets, "version": __version__}
            done, add = stack.enter_context(file.opened(images, note)), file.add
        if bar and total:
            bar.counts(IMAGES, total, "images")
        left = total - done if total is not None else WORTH_CONVERTING
        if engine.name == "ray":
            job = Job(_path_of(model), str(data_dir) if data_dir else None, rule, top, wanted.batch, left)
            batches = rows_on_ray(images, job, engine.workers)
        else:
            decoders = stack.enter_context(Decoders())
            batches = rows_of(images, classifier.ready_for(left), rule, decoders, top=top, batch=wanted.batch)
        counted = _write(batches, add, done, total, bar or silent)
        if file:
            file.finish()
    rows = kept if not file and printed is None else None
    return {
        "model": classifier.name,
        "out": str(out) if out else None,
        **counted,
        "abstention": abstention,
        "sets": sets,
        "rows": rows,
    }


def _some(inputs: Inputs) -> Iterator[Named]:
    """The images; there must be at least one."""
    images = iter(inputs)
    first = next(images, None)
    if first is None:
        raise UnspurError(f"There are no images in {', '.join(inputs.given)}.")
    return itertools.chain([first], images)


def _path_of(model: Path | ImageClassifier) -> str:
    if not isinstance(model, Path):
        raise UnspurError("A Ray cluster opens the model from its files; name a path.")
    return str(model)


def _rule(
    classifier: ImageClassifier, wanted: Wanted, data_dir: Path | None, progress: Progress
) -> tuple[Rule, AbstentionJSON | None, SetsOfLabelsJSON | None]:
    """How to answer, and what to expect of abstention and of sets if these are asked for."""
    if wanted.coverage is None and wanted.conformal is None:
        stored = classifier.calibration
        return Rule(stored.temperatures if stored else (1.0, 1.0)), None, None
    done = of_stage(progress, "validation images")
    calibration, cue = calibrated(classifier, data_dir, wanted.audit, wanted.coverage, wanted.conformal, done)
    abstention: AbstentionJSON | None = None
    sets: SetsOfLabelsJSON | None = None
    named = calibration.stored["cue"]
    if wanted.coverage is not None:
        abstention = {
            "coverage": wanted.coverage,
            "threshold": calibration.threshold(wanted.coverage),
            "temperatures": calibration.temperatures,
            "ece_before": calibration.stored["ece_before"],
            "ece_after": calibration.stored["ece_after"],
            "cue": named,
            "expected": calibration.expected(wanted.coverage),
        }
    if wanted.conformal is not None:
        floor, expected = calibration.sets(wanted.conformal, classifier.name)
        sets = {"share": wanted.conformal, "floor": floor, "cue": named, "expected": expected}
    threshold = abstention["threshold"] if abstention else None
    return Rule(calibration.temperatures, threshold, cue, sets["floor"] if sets else None), abstention, sets


def _about(classifier: ImageClassifier, wanted: Wanted) -> dict[str, Any]:
    """What every row of a file has in common."""
    return {
        "model": classifier.content,
        "classes": list(classifier.classes),
        "topk": wanted.top,
        "coverage": wanted.coverage,
        "audit": str(wanted.audit) if wanted.audit else None,
        "conformal": wanted.conformal,
    }


def _write(batches: Iterator[list[Row]], add: Sink, done: int, total: int | None, progress: Progress) -> Counted:
    began, images, unreadable, abstained = time.monotonic(), 0, 0, 0
    for rows in batches:
        add(rows)
        images += len(rows)
        unreadable += sum(not row.top for row in rows)
        abstained += sum(row.abstain and bool(row.top) for row in rows)
        if total:
            progress(IMAGES, (done + images) / total)
    seconds = time.monotonic() - began
    return {
        "images": done + images,
        "found": done,
        "unreadable": unreadable,
        "abstained": abstained,
        "seconds": round(seconds, 2),
        "images_per_second": round(images / seconds, 1) if images and seconds else 0.0,
    }


def _collect(kept: list[RowJSON]) -> Sink:
    return lambda rows: kept.extend(map(as_json, rows))


def _printing(printed: BinaryIO, format: CSV) -> Sink:
    printed.write(format.head())

    def add(rows: list[Row]) -> None:
        for row in rows:
            printed.write(format.row(row))
        printed.flush()

    return add
