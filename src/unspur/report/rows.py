"""What the page's tables say, from result.json and the data's own names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unspur.core.options import options
from unspur.data.base import Dataset, Split, aligned_with
from unspur.metrics.groups import wilson_interval
from unspur.runs.config import Config, configure


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


@dataclass(frozen=True)
class Setting:
    """One setting of a run, as ``--set`` would name it."""

    key: str
    value: str
    changed: bool  # differs from the default
    comment: str


def scored(name: str, block: Mapping[str, Any], data: Dataset) -> Scored:
    """The rows of one entry of a result's ``tests``; a stage's entry may lack everything but the accuracy."""
    groups = block.get("groups") or []
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
    worst = block.get("worst_group_accuracy")
    return Scored(
        name=name,
        attributes=tuple(groups[0]["attributes"]) if groups else (),
        accuracy=_share(block),
        worst=None if worst is None else min((r.share for r in rows), key=lambda s: s.value, default=Share(worst)),
        aligned=_pooled(block.get("aligned_accuracy"), [r for r in rows if r.aligned]),
        conflicting=_pooled(block.get("conflicting_accuracy"), [r for r in rows if r.aligned is False]),
        mean_group=block.get("mean_group_accuracy"),
        train_weighted=block.get("train_weighted_accuracy"),
        groups=rows,
    )


def settings(config: Config) -> tuple[Setting, ...]:
    """Every setting of the run, those that differ from the defaults marked."""
    default = configure(config.method.name, config.data.name, config.arch.name)
    usual = {key: value for key, value, _ in _flat(default)}
    return tuple(
        Setting(key, plain(value), key not in usual or usual[key] != value, comment)
        for key, value, comment in _flat(config)
    )


def labels(configs: Sequence[Config]) -> list[str]:
    """What to call each run beside the others: its method, and what sets it apart from its like on the same data.

    Where networks differ all are named, or methods would be compared that did not have the same. The seed is left out:
    runs that differ by it alone are the same thing done again.
    """
    flat = [{key: value for key, value, _ in _flat(config) if key != "seed"} for config in configs]
    names = []
    for own in flat:
        like = [other for other in flat if all(other[key] == own[key] for key in ("method", "data.name"))]
        archs = {other["arch.name"] for other in flat if other["data.name"] == own["data.name"]}
        words = [own["method"], *([own["arch.name"]] if len(archs) > 1 else ())]
        for key, value in own.items():
            # Another architecture has other options; its name has said so.
            peers = [o for o in like if not key.startswith("arch.") or o["arch.name"] == own["arch.name"]]
            if any(key not in other or other[key] != value for other in peers):
                words.append(f"{key}={plain(value)}")
        names.append(" ".join(words))
    return names


def plain(value: Any) -> str:
    """A setting's or a fact's value as a person would write it.

    >>> plain((1, 2)), plain(None), plain(1e-05), plain(True), plain({"lam": 0.5, "epoch": 10})
    ('1,2', 'none', '1e-05', 'true', 'lam 0.5, epoch 10')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ",".join(plain(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(item)}" for key, item in value.items())
    return str(value)


def _flat(config: Config) -> Iterable[tuple[str, Any, str]]:
    yield "method", config.method.name, ""
    yield from options(config.method)
    yield "data.name", config.data.name, ""
    yield from options(config.data, "data.")
    yield "arch.name", config.arch.name, ""
    yield from options(config.arch, "arch.")
    yield "seed", config.seed, "fixes everything random"
    yield "precision", config.precision, "full, or bf16: the networks' products in 16 bits"


def _alignment(groups: Sequence[Mapping[str, Any]], train: Split) -> list[bool] | list[None]:
    """Whether each group follows the training correlation, by the rule that the scores follow."""
    names = list(train.attributes)
    if not groups or not names or set(groups[0]["attributes"]) != set(names):
        return [None] * len(groups)
    y = torch.tensor([group["y"] for group in groups])
    columns = {name: torch.tensor([group["attributes"][name] for group in groups]) for name in names}
    aligned = aligned_with(train, Split(torch.zeros(len(groups), 1), y, columns))
    return [None] * len(groups) if aligned is None else aligned.tolist()


def _share(block: Mapping[str, Any]) -> Share:
    low, high = block.get("ci95") or (None, None)
    return Share(block["accuracy"], low, high, block.get("n"))


def _pooled(accuracy: float | None, rows: Sequence[GroupRow]) -> Share | None:
    """``accuracy`` over the samples of ``rows`` together, with its interval."""
    if accuracy is None:
        return None
    n = sum(row.share.n or 0 for row in rows)
    return Share(accuracy, *wilson_interval(round(accuracy * n), n), n) if n else Share(accuracy)
