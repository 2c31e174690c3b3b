"""Images to rows: separate processes decode images while the model works on those before them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unspur.data.images.decode import SquareFit
from unspur.data.images.workers import Decoded, Decoders, Task
from unspur.practice.predict.abstention import Scored, scored
from unspur.practice.predict.audited_cue import AuditedCue
from unspur.practice.predict.classifier import ImageClassifier
from unspur.practice.predict.conformal import in_set
from unspur.practice.predict.inputs import Named, in_parts
from unspur.practice.predict.rows import Guess, Row

PART = 8  # images handed to a process at once: few, so that a batch is spread over all processes
AHEAD = 3  # batches that are decoded while the model works on one


@dataclass(frozen=True, eq=False)
class Rule:
    """What turns scores into answers; without a threshold every image is answered."""

    temperatures: Sequence[float] = (1.0, 1.0)
    threshold: float | None = None
    cue: AuditedCue | None = None
    floor: float | None = None  # of sets of labels; None: there are none


class Answer(NamedTuple):
    """The answer for an image that could be read."""

    top: tuple[Guess, ...]
    why: str  # of abstaining; empty otherwise
    labels: tuple[str, ...] | None


class Read(NamedTuple):
    """An image that was named, and its pixels or what is wrong with it."""

    image: Named
    pixels: bytes | None
    problem: str


def rows_of(
    images: Iterator[Named], classifier: ImageClassifier, rule: Rule, decoders: Decoders, *, top: int, batch: int
) -> Iterator[list[Row]]:
    """The rows of ``images`` in order, a batch at a time."""
    waiting: list[Read] = []
    for read in _decoded(images, classifier.size, classifier.fit, decoders, batch):
        waiting.append(read)
        if len(waiting) == batch:
            yield label_batch(waiting, classifier, rule, top)
            waiting = []
    if waiting:
        yield label_batch(waiting, classifier, rule, top)


def _decoded(images: Iterator[Named], size: int, fit: SquareFit, decoders: Decoders, batch: int) -> Iterator[Read]:
    parts: deque[list[Named]] = deque()

    def tasks() -> Iterator[Task]:
        for part in in_parts(images, PART):
            parts.append(part)
            yield Task(tuple(image.path for image in part if not image.problem), size, fit, send=True)

    for results in decoders.run(tasks(), ahead=AHEAD * -(-batch // PART)):
        answers = iter(results)
        for image in parts.popleft():
            result = image.problem or next(answers)
            if isinstance(result, Decoded):
                yield Read(image, result.pixels, "")
            else:
                yield Read(image, None, result if isinstance(result, str) else result.reason)


def label_batch(batch: Sequence[Read], classifier: ImageClassifier, rule: Rule, top: int) -> list[Row]:
    """The rows of a batch in order, including those of broken images."""
    whole = [read.pixels for read in batch if read.pixels is not None]
    answers: Iterator[Answer] = iter(())
    if whole:
        pixels = np.frombuffer(bytearray().join(whole), np.uint8)
        images = torch.from_numpy(pixels).reshape(len(whole), 3, classifier.size, classifier.size)
        answers = iter(_answers(images, classifier, rule, top))
    done = []
    for read in batch:
        if read.pixels is None:
            done.append(Row(read.image.name, (), True, f"unreadable: {read.problem}"))
        else:
            answer = next(answers)
            done.append(Row(read.image.name, answer.top, bool(answer.why), answer.why, answer.labels))
    return done


def _answers(images: Tensor, classifier: ImageClassifier, rule: Rule, top: int) -> list[Answer]:
    abstains = rule.threshold is not None
    before = classifier.before(images) if classifier.before and abstains else None
    scores = scored(classifier.logits(images), before, rule.temperatures)
    probability, label = scores.probability.topk(top, dim=1)
    guesses = [
        tuple(Guess(classifier.classes[number], share) for number, share in zip(*row, strict=True))
        for row in zip(label.tolist(), probability.tolist(), strict=True)
    ]
    why = _reasons(images, scores, classifier, rule) if abstains else [""] * len(images)
    labels = _sets(scores, classifier.classes, rule.floor) if rule.floor is not None else [None] * len(images)
    return [Answer(*each) for each in zip(guesses, why, labels, strict=True)]


def _sets(scores: Scored, classes: tuple[str, ...], floor: float) -> list[tuple[str, ...]]:
    """The labels that reach the floor, the likeliest first."""
    order = scores.plain.argsort(dim=1, descending=True, stable=True).tolist()
    sizes = in_set(scores.plain, floor).sum(1).tolist()
    return [tuple(classes[number] for number in row[:size]) for row, size in zip(order, sizes, strict=True)]


def _reasons(images: Tensor, scores: Scored, classifier: ImageClassifier, rule: Rule) -> list[str]:
    """Why not to answer, for each image: the most informative rule that applies, or an empty text."""
    threshold = rule.threshold or 0.0
    reasons = [
        f"unsure: confidence {confidence:.6f} is below the threshold" if confidence < threshold else ""
        for confidence in scores.confidence.tolist()
    ]
    if rule.cue is not None:
        decides = rule.cue.decides(images, scores.label, classifier.logits).tolist()
        words = f"the cue decides: the prediction changes with that of another class ({rule.cue.what})"
        reasons = [words if bad else why for bad, why in zip(decides, reasons, strict=True)]
    if scores.other is not None:
        both = zip(scores.other.tolist(), scores.label.tolist(), reasons, strict=True)
        reasons = [
            why if one == two else f"the models disagree: {classifier.classes[one]} before the repair"
            for one, two, why in both
        ]
    return reasons
