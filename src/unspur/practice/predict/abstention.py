"""When to abstain: a threshold from validation data, two models that disagree, or a cue that decides.

The confidence of an answer is its calibrated probability, times that of the same class by the model before the repair
if there is one (MaskTune, 4.2). The other rules abstain whatever the threshold is. So the threshold is lowered until
the coverage asked for is reached or nothing is left to answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NotRequired, TypedDict

import torch
from torch import Tensor

from unspur.core.shapes import checked
from unspur.errors import UnspurError
from unspur.metrics.calibration import calibration_error, temperature_for
from unspur.metrics.groups import wilson_interval
from unspur.metrics.selective import require_coverage, threshold_for
from unspur.practice.predict.conformal import (
    SHARES,
    ExpectedSetsJSON,
    Known,
    SetsJSON,
    require_enough,
    require_share,
    sets_of,
)

NEVER = -1.0  # the confidence of images on which another rule abstains
STEPS = 100  # coverages, from 0.01 to 1, whose thresholds are stored with an exported model


class Scored(NamedTuple):
    """What the models predict for some images."""

    probability: Tensor  # (n, classes), calibrated
    label: Tensor
    confidence: Tensor
    other: Tensor | None  # what the model before the repair predicts
    plain: Tensor  # (n, classes), probabilities without a temperature


def scored(after: Tensor, before: Tensor | None, temperatures: Sequence[float]) -> Scored:
    """Scores from logits, divided by the temperature of each model."""
    probability = (after.double() / temperatures[0]).softmax(1)
    plain = after.double().softmax(1)
    confidence, label = probability.max(1)
    if before is None:
        return Scored(probability, label, confidence, None, plain)
    earlier = (before.double() / temperatures[1]).softmax(1)
    confidence = confidence * earlier.gather(1, label[:, None]).squeeze(1)
    return Scored(probability, label, confidence, earlier.argmax(1), plain)


class ExpectedJSON(TypedDict):
    """What to expect of images like those of one validation set."""

    images: str  # which
    n: int
    coverage: float
    error: float | None  # of the answers; None: nothing is answered
    ci95: list[float] | None
    error_answering_all: float


class CalibrationJSON(TypedDict):
    """`abstention.json` of an exported model."""

    temperatures: list[float]
    ece_before: float
    ece_after: float
    n: int
    two_models: bool
    cue: str | None
    thresholds: list[float]  # for coverages 0.01, 0.02, ... 1
    expected: list[list[ExpectedJSON]]  # for the same
    sets: NotRequired[SetsJSON]  # the first exports had none


class Sets(NamedTuple):
    """Sets of labels that contain the right one for some share of images."""

    floor: float  # the least probability, without a temperature, of a label in a set
    expected: list[ExpectedSetsJSON]


@dataclass(frozen=True)
class Calibration:
    """What validation data say of a model: temperatures, and a threshold for each coverage with what to expect."""

    stored: CalibrationJSON

    @property
    def temperatures(self) -> list[float]:
        return self.stored["temperatures"]

    def threshold(self, coverage: float) -> float:
        require_coverage(coverage)
        return self.stored["thresholds"][_place(coverage)]

    def expected(self, coverage: float) -> list[ExpectedJSON]:
        require_coverage(coverage)
        return self.stored["expected"][_place(coverage)]

    def sets(self, share: float, source: str) -> Sets:
        """Sets for at least the ``share`` of images; if none are stored, the error says to export ``source`` again."""
        if "sets" not in self.stored:
            raise UnspurError(f"{source} was exported by a version without --conformal; export the run again.")
        require_share(share)
        place = _place(share)
        expected = self.stored["sets"]["expected"][place]
        require_enough(min(each["n"] for each in expected), SHARES[place])
        return Sets(self.stored["sets"]["floors"][place], expected)


def _place(share: float) -> int:
    """The lowest stored share that is at least the one asked for."""
    return min(STEPS, -(-round(share * STEPS * 1e6) // 10**6)) - 1


class Judged(NamedTuple):
    """Validation images of one kind: what the models predict, the right labels, and where the cue decides."""

    images: str
    scores: Scored
    y: Tensor
    cue_decides: Tensor | None

    @property
    def confidence(self) -> Tensor:
        held = torch.zeros(len(self.y), dtype=torch.bool) if self.cue_decides is None else self.cue_decides
        if self.scores.other is not None:
            held = held | (self.scores.other != self.scores.label)
        return self.scores.confidence.masked_fill(held, NEVER)

    @property
    def known(self) -> Known:
        return Known(self.images, self.scores.plain, self.y)

    def expected(self, threshold: float) -> ExpectedJSON:
        answered = self.confidence >= threshold
        wrong, n, given = self.scores.label != self.y, len(self.y), int(answered.sum())
        missed = int((answered & wrong).sum())
        return {
            "images": self.images,
            "n": n,
            "coverage": round(given / n, 4),
            "error": round(missed / given, 4) if given else None,
            "ci95": [round(bound, 4) for bound in wilson_interval(missed, given)] if given else None,
            "error_answering_all": round(float(wrong.double().mean()), 4),
        }


def threshold_of(judged: Sequence[Judged], coverage: float) -> float:
    """The threshold that answers the share ``coverage`` of all images, as far as the other rules allow."""
    return max(0.0, threshold_for(torch.cat([each.confidence for each in judged]), coverage))


class Fitted(NamedTuple):
    """Temperatures of the model and the one before the repair; the model's calibration error without and with it."""

    temperatures: list[float]
    ece_before: float
    ece_after: float


def fit_temperatures(after: Tensor, before: Tensor | None, y: Tensor) -> Fitted:
    """Temperatures from the logits of validation images."""
    temperatures = [round(temperature_for(logits, y), 6) for logits in (after, before) if logits is not None]
    errors = []
    for temperature in (1.0, temperatures[0]):
        probability, label = (after.double() / temperature).softmax(1).max(1)
        errors.append(calibration_error(probability, label == y))
    return Fitted(temperatures, errors[0], errors[1])


def calibration_of(judged: Sequence[Judged], chosen: Sequence[Judged], fitted: Fitted, cue: str | None) -> Calibration:
    """Thresholds for every coverage from the images ``chosen``, and what to expect of all that were judged.

    A coverage for which the validation set is too small gets the threshold of the next one that it is large enough for.
    """
    n = sum(len(each.y) for each in chosen)
    coverages = [1.0 if step / STEPS > 1 - 1 / n else max(step / STEPS, 1 / n) for step in range(1, STEPS + 1)]
    thresholds = [threshold_of(chosen, coverage) for coverage in coverages]
    return Calibration(
        {
            "temperatures": fitted.temperatures,
            "ece_before": round(fitted.ece_before, 4),
            "ece_after": round(fitted.ece_after, 4),
            "n": len(judged[0].y),
            "two_models": judged[0].scores.other is not None,
            "cue": cue,
            "thresholds": thresholds,
            "expected": [[each.expected(threshold) for each in judged] for threshold in thresholds],
            "sets": sets_of([each.known for each in judged], [each.known for each in chosen]),
        }
    )


def calibration_of_json(value: Any, source: str) -> Calibration:
    """Read what ``Calibration.stored`` became as JSON; an error names the file and the field that is wrong."""
    stored: CalibrationJSON = checked(value, CalibrationJSON, source)
    if not len(stored["thresholds"]) == len(stored["expected"]) == STEPS or not stored["temperatures"]:
        raise UnspurError(f"{source} holds no abstention rule that can be read; export the run again.")
    sets = stored.get("sets")
    if sets and not (len(sets["floors"]) == len(sets["expected"]) == len(SHARES) and all(sets["expected"])):
        raise UnspurError(f"{source} holds no sets of labels that can be read; export the run again.")
    return Calibration(stored)
