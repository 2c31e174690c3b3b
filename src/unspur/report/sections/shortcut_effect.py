"""What a run's models lose when the shortcut is taken away from the same images (metrics/shortcut.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from unspur.data.base import Dataset
from unspur.metrics.shortcut import ShortcutEffect, shortcut_effect
from unspur.report.context import RunContext
from unspur.report.section import Section

Logits = Callable[[str], Tensor]  # of every sample of the test set with that name


@dataclass(frozen=True)
class Effect:
    """The images of test set ``on`` that have the shortcut, and the same images in test set ``off`` without it."""

    on: str
    off: str
    images: int
    rows: tuple[tuple[str, ShortcutEffect], ...]  # a model's name, and what taking the shortcut away does to it


def effects_of(run: RunContext) -> tuple[Effect, ...]:
    """What the shortcut does to every stage of a run and to its result."""
    stages: dict[str, Logits] = {stage.name: partial(run.logits, stage=stage.name) for stage in run.stages}
    return effects({**stages, "result": run.logits}, run.data.data)


def effects(models: Mapping[str, Logits], data: Dataset) -> tuple[Effect, ...]:
    """For every pair of test sets that ``data`` names, what the shortcut does to each of ``models``."""
    found = []
    for on, off in data.without_shortcut.items():
        shown, bare = data.tests[on], data.tests[off]
        differ = torch.stack([shown.attributes[name] != bare.attributes[name] for name in shown.attributes]).any(0)
        if differ.any():
            rows = [(name, shortcut_effect(say(on)[differ], say(off)[differ])) for name, say in models.items()]
            found.append(Effect(on, off, int(differ.sum()), tuple(rows)))
    return tuple(found)


SHORTCUT_EFFECT = Section("shortcut_effect", effects_of, lambda run: bool(run.tests and run.data.data.without_shortcut))
