"""Measures of some consecutive images: one step of the pass over all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from unspur.data.images.decode import Unreadable
from unspur.practice.audit.file_facts import FileFacts
from unspur.practice.audit.image_source import Item
from unspur.practice.audit.image_statistics import SCENE, border_statistics, cell_statistics
from unspur.practice.audit.processing_traces import TRACES

BATCH = 16  # images that are measured together: what they take fits into the processor's cache
PICTURES = "pictures"


class Part(NamedTuple):
    """What is known about some consecutive images; those that cannot be read are left out."""

    rows: list[int]  # their numbers
    facts: list[FileFacts | None]
    measures: dict[str, Tensor]
    pictured: list[int]  # numbers of the images of which a small copy is kept
    problems: dict[int, str]


def measured(read: Callable[[int], Item], numbers: Sequence[int], keep: Container[int]) -> Part:
    """What is known about the images with these ``numbers``; a small copy is kept of those in ``keep``.

    The same numbers together give the same bits on every machine of the same kind.
    """
    items: dict[int, Item] = {}
    problems: dict[int, str] = {}
    for number in numbers:
        try:
            items[number] = read(number)
        except Unreadable as problem:
            problems[number] = str(problem)
    pictured = [number for number in items if number in keep]
    measures = _measures(list(items.values())) if items else {}
    if pictured:
        measures[PICTURES] = torch.stack([items[number].small for number in pictured])
    return Part(
        rows=list(items),
        facts=[item.facts for item in items.values()],
        measures=measures,
        pictured=pictured,
        problems=problems,
    )


def _measures(items: Sequence[Item]) -> dict[str, Tensor]:
    small = torch.stack([item.small for item in items]).float() / 255
    measures = {"cells": cell_statistics(small), "borders": border_statistics(small)}
    measures |= {name: measure(small) for name, measure in SCENE.items()}
    return measures | _traces([item.piece for item in items])


def _traces(pieces: Sequence[Tensor]) -> dict[str, Tensor]:
    """Measure pieces of one size together, and put the results back in order."""
    by_size = defaultdict(list)
    for number, piece in enumerate(pieces):
        by_size[piece.shape[-1]].append(number)
    back = torch.tensor([number for members in by_size.values() for number in members]).argsort()
    equal = [torch.stack([pieces[number] for number in members]).float() / 255 for members in by_size.values()]
    return {name: torch.cat([measure(images) for images in equal])[back] for name, measure in TRACES.items()}
