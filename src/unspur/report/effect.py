"""What a run's models lose when the shortcut is taken away from the same images (metrics/shortcut.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from unspur.data.base import Dataset
from unspur.evaluation.scores import predict
from unspur.metrics.shortcut import ShortcutEffect, shortcut_effect
from unspur.runs.folder import Run


@dataclass(frozen=True)
class Effect:
    """The images of test set ``on`` that have the shortcut, and the same images in test set ``off`` without it."""

    on: str
    off: str
    images: int
    rows: tuple[tuple[str, ShortcutEffect], ...]  # a model's name, and what taking the shortcut away does to it


def effects_of(run: Run, data: Dataset) -> tuple[Effect, ...]:
    """What the shortcut does to every stage of a run and to its result."""
    if not data.without_shortcut:
        return ()
    return effects(
        {**{name: run.load_model(data, name) for name in run.stages()}, "result": run.load_model(data)}, data
    )


def effects(models: Mapping[str, nn.Module], data: Dataset) -> tuple[Effect, ...]:
    """For every pair of test sets that ``data`` names, what the shortcut does to each of ``models``."""
    found = []
    for on, off in data.without_shortcut.items():
        shown, bare = data.tests[on], data.tests[off]
        differ = torch.stack([shown.attributes[name] != bare.attributes[name] for name in shown.attributes]).any(0)
        index = differ.nonzero().squeeze(1)
        if len(index):
            pair = shown.subset(index), bare.subset(index)
            rows = [(name, shortcut_effect(*(predict(model, s) for s in pair))) for name, model in models.items()]
            found.append(Effect(on, off, len(index), tuple(rows)))
    return tuple(found)
