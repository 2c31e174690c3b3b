"""Abstain when unsure: answers at a target coverage, and a predictor to take away (MaskTune, 2.2 and 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unspur.core.files import read_tensors, write_tensors
from unspur.core.options import to_json
from unspur.data.base import Dataset, Split, groups_of
from unspur.errors import UnspurError
from unspur.evaluation.scores import Predictions, predict
from unspur.metrics.selective import (
    COVERAGES,
    Scores,
    answers,
    at_coverages,
    aurc,
    hard_agreement,
    product_response,
    selective,
    selective_by_group,
    softmax_response,
    threshold_for,
)
from unspur.models.catalog import arch_from_json
from unspur.models.spec import ArchSpec
from unspur.parts.abstaining import Selector

# How two models' logits, the one before the repair and the one after it, become an answer and a confidence.
MODES: Mapping[str, Callable[[Tensor, Tensor], Scores]] = {
    "product": product_response,
    "softmax_response": lambda before, after: softmax_response(before),
    "agreement": hard_agreement,
}

LEARNED = "learned"  # the mode of a method that has learnt when to abstain


def selective_scores(
    before: Predictions, after: Predictions, data: Dataset, coverage: float, selector: Selector | None = None
) -> dict[str, Any]:
    """Coverage and error of every mode on every test set, thresholds chosen on the validation set alone.

    ``softmax_response`` is the single model before the repair: what one would have had without it. ``learned`` uses the
    ``selector`` of a method that learns to abstain.
    """
    if not len(data.val):
        raise UnspurError("There is no validation set to choose a threshold on; load the data with one (data.val).")
    found: dict[str, Any] = {}
    held = _modes(before, after, data.val, "val", selector)
    for name, test in data.tests.items():
        if len(test):
            modes = _modes(before, after, test, name, selector)
            found[name] = {
                mode: _score(mode, held[mode].confidence, scores, test, coverage) for mode, scores in modes.items()
            }
    return found


def _modes(
    before: Predictions, after: Predictions, split: Split, name: str, selector: Selector | None
) -> dict[str, Scores]:
    """What each mode answers, and how sure it is."""
    first, last = before.of(split, name), after.of(split, name)
    modes = {mode: scores(first, last) for mode, scores in MODES.items()}
    if selector is not None:
        modes[LEARNED] = Scores(last.argmax(1), selector.confidence(after.features(split), last))
    return modes


def _score(mode: str, validation: Tensor, scores: Scores, test: Split, coverage: float) -> dict[str, Any]:
    correct = scores.pred == test.y
    # Agreement answers wherever the models agree, so its coverage is fixed, whatever coverage was asked for.
    threshold = 1.0 if mode == "agreement" else threshold_for(validation, coverage)
    answered = answers(scores.confidence, threshold)
    groups = groups_of(test)
    by_group = selective_by_group(answered, correct, groups.id)
    table = {} if mode == "agreement" else at_coverages(scores.confidence, correct, validation, COVERAGES)
    return {
        "threshold": threshold,
        **selective(answered, correct)._asdict(),
        "aurc": aurc(scores.confidence, correct),
        "at_coverages": [{"target": target, **point._asdict()} for target, point in table.items()],
        "groups": [
            {"y": y, "attributes": dict(zip(test.attributes, values, strict=True)), **by_group[number]._asdict()}
            for number, (y, *values) in enumerate(groups.keys)
        ],
    }


@dataclass(frozen=True, eq=False)
class Predictor:
    """Two models that answer together, or abstain."""

    before: nn.Module
    after: nn.Module
    arch: ArchSpec
    classes: tuple[str, ...]
    sample_shape: tuple[int, ...]
    statistics: tuple[tuple[float, ...] | None, tuple[float, ...] | None]
    threshold: float

    @classmethod
    def choose(cls, before: nn.Module, after: nn.Module, arch: ArchSpec, data: Dataset, coverage: float) -> Predictor:
        """A predictor whose threshold answers the share ``coverage`` of the validation set."""
        confidence = product_response(predict(before, data.val), predict(after, data.val)).confidence
        threshold = threshold_for(confidence, coverage)
        return cls(before, after, arch, data.classes, tuple(data.sample_shape), (data.mean, data.std), threshold)

    def predict(self, images: Tensor) -> list[str | None]:
        """The class of each image, (n, channels, height, width) bytes or pixels in [0, 1], or None to abstain."""
        if tuple(images.shape[1:]) != self.sample_shape:
            raise UnspurError(
                f"The predictor takes images of {self.sample_shape}, but these are {tuple(images.shape[1:])}."
            )
        split = Split(images, torch.zeros(len(images), dtype=torch.long))
        scores = product_response(predict(self.before, split), predict(self.after, split))
        given = answers(scores.confidence, self.threshold).tolist()
        return [self.classes[label] if sure else None for label, sure in zip(scores.pred.tolist(), given, strict=True)]

    def save(self, path: Path) -> None:
        """Write everything the predictor needs to one safetensors file."""
        models = {"before": self.before, "after": self.after}
        weights = {f"{part}.{name}": t for part, model in models.items() for name, t in model.state_dict().items()}
        note = {
            "arch": to_json(self.arch),
            "classes": self.classes,
            "sample_shape": self.sample_shape,
            "statistics": self.statistics,
            "threshold": self.threshold,
        }
        write_tensors(path, weights, note)

    @classmethod
    def load(cls, path: Path) -> Predictor:
        """Read what ``save`` wrote."""
        weights, note = read_tensors(path)
        try:
            arch, classes, shape = arch_from_json(note["arch"]), tuple(note["classes"]), tuple(note["sample_shape"])
            mean, std = (values and tuple(values) for values in note["statistics"])
            threshold = float(note["threshold"])
        except (KeyError, TypeError, ValueError) as error:
            raise UnspurError(f"{path} is not a predictor's file ({error!r}).") from None
        empty = Split(torch.zeros(0, *shape), torch.zeros(0, dtype=torch.long))
        data = Dataset("predictor", empty, empty, {}, classes, mean=mean, std=std)
        models = []
        for part in ("before", "after"):
            own = {name.removeprefix(part + "."): t for name, t in weights.items() if name.startswith(part + ".")}
            models.append(arch.restore(data, own, str(path)).eval())
        return cls(models[0], models[1], arch, classes, shape, (mean, std), threshold)
