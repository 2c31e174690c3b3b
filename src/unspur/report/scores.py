"""Scores with the data's own names: what every table and sentence of the page takes from result.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unspur.data.base import Dataset, Split, aligned_with
from unspur.evaluation.scores import GroupScores, TestScores
from unspur.evaluation.scores import Share as ShareBlock
from unspur.metrics.groups import wilson_interval
from unspur.runs.convergence import predicts_one_class


@dataclass(frozen=True)
class Share:
    """How many of n samples are right, with the 95 % interval where n is known."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class GroupRow:
    """One group: its class, its attributes' values, and whether it follows the training correlation."""

    label: str
    values: tuple[str, ...]
    aligned: bool | None
    share: Share


@dataclass(frozen=True)
class Scored:
    """One test set of one model: its scores and its groups."""

    name: str
    attributes: tuple[str, ...]
    accuracy: Share
    worst: Share | None
    aligned: Share | None
    conflicting: Share | None
    mean_group: float | None
    train_weighted: float | None
    groups: tuple[GroupRow, ...]
    only_class: str | None = None  # what the model predicts for every sample, if that is one class of several


def scored(name: str, block: TestScores, data: Dataset) -> Scored:
    """The rows of one entry of a result's ``tests``."""
    groups = block["groups"]
    aligned = _alignment(groups, data.train)
    rows = tuple(
        GroupRow(
            data.classes[group["y"]],
            tuple(data.attribute_values[attribute][value] for attribute, value in group["attributes"].items()),
            follows,
            _share(group),
        )
        for group, follows in zip(groups, aligned, strict=True)
    )
    worst, only = block["worst_group_accuracy"], only_class(block)
    return Scored(
        name=name,
        attributes=tuple(groups[0]["attributes"]) if groups else (),
        accuracy=_share(block),
        worst=None if worst is None else min((r.share for r in rows), key=lambda s: s.value, default=Share(worst)),
        aligned=_pooled(block["aligned_accuracy"], [r for r in rows if r.aligned]),
        conflicting=_pooled(block["conflicting_accuracy"], [r for r in rows if r.aligned is False]),
        mean_group=block["mean_group_accuracy"],
        train_weighted=block["train_weighted_accuracy"],
        groups=rows,
        only_class=None if only is None else data.classes[only],
    )


def only_class(block: TestScores) -> int | None:
    """The class that a model predicts for every sample of a test set; None if it predicts several.

    Runs of version 0.1 did not store it, but the one class that is always right shows it.
    """
    if not predicts_one_class(block):
        return None
    stored = block.get("only_class")
    return next(group["y"] for group in block["groups"] if group["accuracy"] == 1) if stored is None else stored


def _alignment(groups: Sequence[GroupScores], train: Split) -> list[bool] | list[None]:
    """Whether each group follows the training correlation, by the rule that the scores follow."""
    names = list(train.attributes)
    if not groups or not names or set(groups[0]["attributes"]) != set(names):
        return [None] * len(groups)
    y = torch.tensor([group["y"] for group in groups])
    columns = {name: torch.tensor([group["attributes"][name] for group in groups]) for name in names}
    aligned = aligned_with(train, Split(torch.zeros(len(groups), 1), y, columns))
    return [None] * len(groups) if aligned is None else aligned.tolist()


def _share(block: ShareBlock) -> Share:
    low, high = block["ci95"]
    return Share(block["accuracy"], low, high, block["n"])


def _pooled(accuracy: float | None, rows: Sequence[GroupRow]) -> Share | None:
    """``accuracy`` over the samples of ``rows`` together, with its interval."""
    if accuracy is None:
        return None
    n = sum(row.share.n or 0 for row in rows)
    return Share(accuracy, *wilson_interval(round(accuracy * n), n), n) if n else Share(accuracy)
