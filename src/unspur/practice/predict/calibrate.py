"""Validation images through the models: temperatures, thresholds, and what to expect with and without the cue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from unspur.core.progress import Done
from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError, require
from unspur.metrics.selective import require_coverage
from unspur.practice.predict.abstention import (
    Calibration,
    Fitted,
    Judged,
    calibration_of,
    fit_temperatures,
    scored,
    threshold_of,
)
from unspur.practice.predict.audited_cue import AuditedCue, audited_cue
from unspur.practice.predict.classifier import ImageClassifier, Logits
from unspur.practice.predict.conformal import require_enough

MOST = 1_000  # validation images in which cues are swapped: each costs up to a dozen passes
BATCH = 64
AS_THEY_ARE, SWAPPED, REMOVED = "as in validation data", "with the cue of another class", "without the cue"


class Calibrated(NamedTuple):
    """A calibration, and the cue whose decisions are not to be trusted."""

    calibration: Calibration
    cue: AuditedCue | None


def calibrated(
    classifier: ImageClassifier,
    data_dir: Path | None,
    audit: Path | None = None,
    coverage: float | None = None,
    conformal: float | None = None,
    progress: Done = lambda done: None,
) -> Calibrated:
    """The calibration on the run's validation data; with an audit that found a shortcut, also with its cue swapped.

    It is an error if the validation set is too small for the share ``coverage`` or ``conformal``.
    """
    if coverage is not None:
        require_coverage(coverage)
    if classifier.run is None:
        require(
            audit is None,
            f"--audit needs validation images, which {classifier.name} does not hold; name the run itself.",
        )
        if classifier.calibration is None:
            raise UnspurError(
                f"{classifier.name} holds no validation confidences, so that no threshold can be chosen; leave "
                "--coverage and --conformal out, or use what `unspur export` writes."
            )
        return Calibrated(classifier.calibration, None)
    val = validation_of(classifier, data_dir)
    if conformal is not None:
        require_enough(len(val), conformal)
    cue = audited_cue(audit, classifier.classes, val) if audit else None
    judged, fitted = judge(classifier.ready_for(len(val)), val, cue, progress)
    chosen = [each for each in judged if each.images != REMOVED]
    if coverage is not None:
        threshold_of(chosen, coverage)
    return Calibrated(calibration_of(judged, chosen, fitted, cue.what if cue else None), cue)


def validation_of(classifier: ImageClassifier, data_dir: Path | None) -> Split:
    """The validation images of the run behind ``classifier``."""
    run = classifier.run
    assert run is not None
    data = run.config.data.load(DataFiles(data_dir))
    run.require_unchanged(data)
    require(
        len(data.val) > 0,
        f"{run.folder} has no validation set to choose a threshold on; train with one (data.val), or leave --coverage "
        "and --conformal out.",
    )
    return data.val


def judge(
    classifier: ImageClassifier, val: Split, cue: AuditedCue | None, progress: Done
) -> tuple[list[Judged], Fitted]:
    """Validation images as they are and, with a cue, some of them with it swapped and without it."""
    kinds = 3 if cue else 1
    if cue and len(val) > MOST:
        val = val.subset(torch.randperm(len(val), generator=stream(0, "swapped validation"))[:MOST].sort().values)

    def part(kind: int) -> Done:
        return lambda done: progress((kind + done) / kinds)

    after, before = _logits(classifier, val, part(0))
    fitted = fit_temperatures(after, before, val.y)
    changes: dict[str, Callable[[Tensor, Tensor], Tensor]] = {AS_THEY_ARE: lambda images, y: images}
    if cue:
        changes |= {SWAPPED: cue.swapped, REMOVED: lambda images, y: cue.removed(images)}
    judged = []
    for kind, (name, change) in enumerate(changes.items()):
        if kind:
            after, before = _logits(classifier, val, part(kind), change)
        scores = scored(after, before, fitted.temperatures)
        decides = _decides(classifier.logits, val, change, scores.label, cue) if cue else None
        judged.append(Judged(name, scores, val.y, decides))
    return judged, fitted


def _logits(
    classifier: ImageClassifier,
    val: Split,
    progress: Done,
    change: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor | None]:
    after, before = [], []
    order = torch.arange(len(val)).split(BATCH)
    for number, index in enumerate(order, 1):
        images = images_of(val, index)
        images = change(images, val.y[index]) if change else images
        after.append(classifier.logits(images))
        if classifier.before:
            before.append(classifier.before(images))
        progress(number / len(order))
    return torch.cat(after), torch.cat(before) if before else None


def _decides(
    logits: Logits, val: Split, change: Callable[[Tensor, Tensor], Tensor], label: Tensor, cue: AuditedCue
) -> Tensor:
    parts = []
    for index in torch.arange(len(val)).split(BATCH):
        images = change(images_of(val, index), val.y[index])
        parts.append(cue.decides(images, label[index], logits))
    return torch.cat(parts)


def images_of(val: Split, index: Tensor) -> Tensor:
    """Bytes (n, 3, size, size) as they come from files: a grey image has three equal channels."""
    return val.x[index].expand(-1, 3, -1, -1)
