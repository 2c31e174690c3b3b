"""Right and wrong predictions of every group of every test set, with maps of where the model looks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspur.data.base import Dataset
from unspur.report.context import RunContext
from unspur.report.group_rows import shuffled, split_rows
from unspur.report.maps import Explainer, Tile, tiles
from unspur.report.section import Section

TILES = 6  # right and wrong predictions shown of each group


@dataclass(frozen=True)
class GalleryRow:
    """Some predictions of one group, and how many there are."""

    title: str
    aligned: bool | None
    right: tuple[Tile, ...]
    wrong: tuple[Tile, ...]
    right_count: int
    wrong_count: int


@dataclass(frozen=True)
class Gallery:
    """The predictions on one test set."""

    test: str
    pooled: bool  # too many groups to show each
    rows: tuple[GalleryRow, ...]


@dataclass(frozen=True)
class Galleries:
    """All test sets; none where samples are not pictures."""

    explained: str
    tests: tuple[Gallery, ...]


def view(run: RunContext) -> Galleries:
    if not run.data.drawn:
        return Galleries("", ())
    explain = run.explainer()
    shown = [gallery(test.name, run.logits(test.name).argmax(1), run.data.data, explain) for test in run.tests]
    return Galleries(explain.sentence, tuple(shown))


def gallery(name: str, predicted: Tensor, data: Dataset, explain: Explainer) -> Gallery:
    """Right and wrong predictions of every group of test set ``name``, drawn at random, with their maps."""
    test = data.tests[name]
    pooled, rows = split_rows(test, data)
    drawn = []
    for title, aligned, samples in rows:
        order = in_order(samples)
        right = predicted[order] == test.y[order]
        shown = [tiles(test, order[chosen][:TILES], predicted, data.classes, explain) for chosen in (right, ~right)]
        drawn.append(GalleryRow(title, aligned, shown[0], shown[1], int(right.sum()), int((~right).sum())))
    return Gallery(name, pooled, tuple(drawn))


def in_order(samples: Tensor) -> Tensor:
    """The order in which samples of a row are shown: at random, whatever a model makes of them."""
    return shuffled(samples, torch.Generator().manual_seed(0))


GALLERY = Section("gallery", view, lambda run: bool(run.tests))
