"""Predict once, score many: the ``tests`` block of a result (docs/metrics.md defines every field)."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

import torch
from torch import Tensor, nn

from unspur.core.progress import Done, Progress, of_stage, silent
from unspur.core.seeds import stream
from unspur.data.base import Dataset, Split, aligned_with, groups_of
from unspur.metrics.groups import (
    group_accuracy,
    mean_group_accuracy,
    weighted_group_accuracy,
    wilson_interval,
    worst_group_accuracy,
)
from unspur.models.base import evaluating, penultimate
from unspur.models.inference import fastest_logits
from unspur.parts.features import frozen_body, kept_features, linear_head


class Share(TypedDict):
    """How many of n samples are right, with the 95 % interval."""

    n: int  # samples
    accuracy: float  # the share that is right
    ci95: list[float]  # Wilson's interval


class GroupScores(Share):
    """One group of a test set."""

    y: int
    attributes: dict[str, int]


class OverGroups(TypedDict):
    """Scores that weigh groups."""

    mean_group_accuracy: float | None
    worst_group_accuracy: float | None
    train_weighted_accuracy: float | None


class TestScores(Share, OverGroups):
    """One test set (docs/metrics.md); what cannot be known is None."""

    aligned_accuracy: float | None  # on samples that follow the training correlation
    conflicting_accuracy: float | None  # on samples that break it
    only_class: NotRequired[int | None]  # what the model predicts for every sample, if that is one class of several
    groups: list[GroupScores]  # a label with its attributes each


ScoreName = Literal[
    "accuracy",
    "mean_group_accuracy",
    "worst_group_accuracy",
    "train_weighted_accuracy",
    "aligned_accuracy",
    "conflicting_accuracy",
]

BATCH = 250  # batches that fit into a CPU's cache are faster
FEW = 50  # the size of a batch where the first one may be enough
MOST_AT_ONCE = 200_000  # samples whose features are held in memory at once: a gigabyte

UNKNOWN_GROUPS: OverGroups = {
    "mean_group_accuracy": None,
    "worst_group_accuracy": None,
    "train_weighted_accuracy": None,
}


def predict(model: nn.Module, split: Split, progress: Done | None = None) -> Tensor:
    """The model's logits for every sample of ``split``, in order, computed where the model is.

    For many photographs they are computed in the fastest way (models/inference.py), which is equal except for the last
    digits. For a head on a frozen network they come from features that all such heads share (parts/features.py).
    """
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    order = torch.arange(len(split)).split(BATCH)
    some = split.batch(order[0][:2], device).x
    if frozen_body(model) and len(split) <= MOST_AT_ONCE and (head := linear_head(model, some)):
        features = kept_features(model, split, device, progress)
        with torch.no_grad():
            found: Tensor = head(features.to(device)).cpu()
        return found
    logits = fastest_logits(model, some, len(split))
    parts = []
    for number, batch in enumerate(split.batches(order, device), 1):
        parts.append(logits(batch.x).cpu())
        if progress:
            progress(number / len(order))
    return torch.cat(parts)


class Predictions:
    """What one model predicts, computed once for each split; ``name`` is what a progress bar calls the model."""

    def __init__(self, model: nn.Module, name: str = "model", progress: Progress = silent) -> None:
        self._model, self._name, self._progress = model, name, progress
        self._known: dict[Split, Tensor] = {}

    def of(self, split: Split, called: str) -> Tensor:
        """The logits for every sample of ``split``, which a progress bar calls ``called``."""
        if split not in self._known:
            self._known[split] = predict(self._model, split, of_stage(self._progress, f"{self._name} on {called}"))
        return self._known[split]

    def features(self, split: Split) -> Tensor:
        """What goes into the model's last layer for every sample of ``split``."""
        return activations(self._model, split)

    def logits(self, data: Dataset) -> dict[str, Tensor]:
        """The logits of every test set of ``data`` that has samples."""
        return {name: self.of(test, name) for name, test in data.tests.items() if len(test)}

    def scores(self, data: Dataset) -> dict[str, TestScores]:
        """Every score on every test set of ``data`` that has samples."""
        return {name: score(logits, data.tests[name], data.train) for name, logits in self.logits(data).items()}


@torch.no_grad()
def only_class(model: nn.Module, split: Split, progress: Done | None = None) -> int | None:
    """The class that ``model`` predicts for every sample of ``split``, if there is one and the samples have several.

    Samples of all classes come in turn, so a model that tells classes apart mostly shows it in the first batch, and the
    other batches are not computed.
    """
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    if len(split.y.unique()) < 2:
        return None
    label, order = None, _in_turn(split.y).split(FEW)
    with evaluating(model):
        for number, batch in enumerate(split.batches(order, device), 1):
            pred = model(batch.x).argmax(1)
            label = int(pred[0]) if label is None else label
            if bool((pred != label).any()):
                return None
            if progress:
                progress(number / len(order))
    return label


def _in_turn(y: Tensor) -> Tensor:
    """The numbers of all samples: one of each class, then another of each.

    >>> _in_turn(torch.tensor([0, 0, 0, 1, 1, 2])).tolist()
    [0, 3, 5, 1, 4, 2]
    """
    turn = torch.empty_like(y)
    for label in y.unique():
        members = y == label
        turn[members] = torch.arange(int(members.sum()))
    return turn.argsort(stable=True)


@torch.no_grad()
def activations(model: nn.Module, split: Split, batch_size: int = 500) -> Tensor:
    """Penultimate activations (samples, neurons) of ``split``, in evaluation mode."""
    device = next(model.parameters()).device
    with evaluating(model):
        parts = [
            penultimate(model, split.batch(index, device).x).cpu()
            for index in torch.arange(len(split)).split(batch_size)
        ]
    return torch.cat(parts)


def chosen(split: Split, count: int, seed: int) -> Tensor:
    """The numbers of at most ``count`` samples, drawn at random, so that even the first few are of all classes."""
    return torch.randperm(len(split), generator=stream(seed, "analysis"))[:count]


def some(split: Split, count: int, seed: int) -> Split:
    """At most ``count`` samples of ``split``, drawn at random."""
    return split.subset(chosen(split, count, seed))


def evaluate(model: nn.Module, data: Dataset) -> dict[str, TestScores]:
    """Every score of ``model`` on every test set of ``data`` that has samples."""
    return Predictions(model).scores(data)


def score(logits: Tensor, test: Split, train: Split) -> TestScores:
    """Every score of predictions on ``test``; scores that ``train`` says nothing about are None."""
    pred = logits.argmax(1)
    correct = pred == test.y
    known = bool(train.attributes) and set(test.attributes) == set(train.attributes)
    aligned = aligned_with(train, test) if known else None
    return {
        **_share(correct),
        **(_group_scores(pred, test, train) if known else UNKNOWN_GROUPS),
        "aligned_accuracy": None if aligned is None else _mean(correct[aligned]),
        "conflicting_accuracy": None if aligned is None else _mean(correct[~aligned]),
        "only_class": int(pred[0]) if len(test.y.unique()) > 1 and bool((pred == pred[0]).all()) else None,
        "groups": _group_rows(correct, test),
    }


def _group_scores(pred: Tensor, test: Split, train: Split) -> OverGroups:
    groups, trained = groups_of(test), groups_of(train)
    accuracy = group_accuracy(pred, test.y, groups.id)
    sizes = dict(zip(trained.keys, torch.bincount(trained.id).tolist(), strict=True))
    weight = {number: float(sizes.get(key, 0)) for number, key in enumerate(groups.keys)}
    return {
        "mean_group_accuracy": mean_group_accuracy(accuracy),
        "worst_group_accuracy": worst_group_accuracy(accuracy),
        "train_weighted_accuracy": weighted_group_accuracy(accuracy, weight),
    }


def _group_rows(correct: Tensor, test: Split) -> list[GroupScores]:
    """A row for each group; with no attributes the groups are the classes."""
    groups = groups_of(test)
    return [
        {
            "y": y,
            "attributes": dict(zip(test.attributes, values, strict=True)),
            **_share(correct[groups.id == number]),
        }
        for number, (y, *values) in enumerate(groups.keys)
    ]


def _share(correct: Tensor) -> Share:
    n, right = len(correct), int(correct.sum())
    return {"n": n, "accuracy": right / n, "ci95": list(wilson_interval(right, n))}


def _mean(correct: Tensor) -> float | None:
    return float(correct.double().mean()) if len(correct) else None
