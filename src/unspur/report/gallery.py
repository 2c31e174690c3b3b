"""Pictures of the data by group, and of where a model looks when it is right and when it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unspur.data.base import Dataset, Split, aligned_with, groups_of
from unspur.errors import UnspurError
from unspur.evaluation.scores import predict
from unspur.models.base import cam_layer
from unspur.report.pictures import drawable, heat, picture
from unspur.saliency.cam import cam
from unspur.saliency.gradients import input_gradients

MOST_ROWS = 12  # with more groups than this, samples are shown as aligned and conflicting only
TILES = 6  # right and wrong predictions shown of each group
SAMPLES = 12  # training images shown of each group


@dataclass(frozen=True)
class Layer:
    """A map to lay over an image."""

    name: str
    uri: str


@dataclass(frozen=True)
class Tile:
    """One image with its maps, what it shows and what the model says."""

    image: str
    layers: tuple[Layer, ...]
    truth: str
    predicted: str
    right: bool
    index: int


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
class SampleRow:
    """Some training images of one group, and how many there are."""

    title: str
    aligned: bool | None
    count: int
    images: tuple[str, ...]


class Explainer(NamedTuple):
    """How to ask a model where it looks: ``maps`` takes images in [0, 1] and gives one map each."""

    name: str
    sentence: str
    maps: Callable[[Tensor], Tensor]


class Rows(NamedTuple):
    """Samples sorted into rows: a title, whether they follow the training correlation, and their numbers."""

    pooled: bool
    rows: list[tuple[str, bool | None, Tensor]]


def explainer(model: nn.Module, sample_shape: torch.Size) -> Explainer:
    """XGradCAM where the model has a spatial layer, input gradients where it has none."""
    try:
        layer = cam_layer(model, sample_shape)
    except UnspurError:
        look = by_gradients(model)
        return look._replace(sentence=f"This model has no spatial layer, so a {look.sentence[2:]}")
    return Explainer(
        "XGradCAM",
        "A map shows how much each place adds to the score of the predicted class (XGradCAM).",
        lambda x: cam(model, x, layer=layer, kind="xgradcam"),
    )


def by_gradients(model: nn.Module) -> Explainer:
    """The size of the input gradient at each pixel."""
    return Explainer(
        "input gradient",
        "A map shows the size of the input gradient: how strongly the predicted class's score reacts to each pixel.",
        lambda x: input_gradients(model, x).abs().amax(1),
    )


def samples(data: Dataset) -> tuple[bool, tuple[SampleRow, ...]]:
    """Training images of every group, drawn at random; whether the groups had to be pooled."""
    pooled, rows = split_rows(data.train, data)
    generator = torch.Generator().manual_seed(0)
    return pooled, tuple(
        SampleRow(title, aligned, len(index), _pictures(data.train, _some(index, SAMPLES, generator)))
        for title, aligned, index in rows
    )


def gallery(name: str, model: nn.Module, data: Dataset, explain: Explainer) -> Gallery:
    """Right and wrong predictions of every group of test set ``name``, drawn at random, with their maps."""
    test = data.tests[name]
    pred = predict(model, test).argmax(1)
    pooled, rows = split_rows(test, data)
    drawn = []
    for title, aligned, index in rows:
        # Each row has its own stream: what one run's rows draw does not depend on how often it was right.
        generator = torch.Generator().manual_seed(0)
        order = _some(index, len(index), generator)
        right = pred[order] == test.y[order]
        tiles = [_tiles(test, order[chosen][:TILES], pred, data.classes, explain) for chosen in (right, ~right)]
        drawn.append(GalleryRow(title, aligned, tiles[0], tiles[1], int(right.sum()), int((~right).sum())))
    return Gallery(name, pooled, tuple(drawn))


def split_rows(split: Split, data: Dataset) -> Rows:
    """A row for each group; of too many, one for all that follow the training correlation and one for the rest."""
    groups, known = groups_of(split), bool(split.attributes) and set(split.attributes) == set(data.train.attributes)
    aligned = aligned_with(data.train, split) if known else None
    if len(groups.keys) <= MOST_ROWS:
        members = [(groups.id == number).nonzero().squeeze(1) for number in range(len(groups.keys))]
        follows = [None if aligned is None else bool(aligned[index[0]]) for index in members]
        titles = [_title(key, split, data) for key in groups.keys]
        return Rows(False, list(zip(titles, follows, members, strict=True)))
    if aligned is None:
        return Rows(True, [("all classes", None, torch.arange(len(split)))])
    halves = [("all aligned groups", True, aligned), ("all conflicting groups", False, ~aligned)]
    return Rows(True, [(title, follows, mask.nonzero().squeeze(1)) for title, follows, mask in halves if mask.any()])


def _title(key: Sequence[int], split: Split, data: Dataset) -> str:
    label, *values = key
    named = [
        f"{name}: {data.attribute_values[name][value]}" for name, value in zip(split.attributes, values, strict=True)
    ]
    return ", ".join([data.classes[label], *named])


def _some(index: Tensor, count: int, generator: torch.Generator) -> Tensor:
    return index[torch.randperm(len(index), generator=generator)[:count]]


def _pictures(split: Split, index: Tensor) -> tuple[str, ...]:
    return tuple(picture(image) for image in split.x[index]) if drawable(split.sample_shape) else ()


def _tiles(split: Split, index: Tensor, pred: Tensor, classes: Sequence[str], explain: Explainer) -> tuple[Tile, ...]:
    if not len(index):
        return ()
    batch = split.batch(index)
    maps = explain.maps(batch.x)
    return tuple(
        Tile(
            image,
            (Layer(explain.name, heat(values)),),
            classes[truth],
            classes[predicted],
            truth == predicted,
            number,
        )
        for image, values, truth, predicted, number in zip(
            _pictures(split, index), maps, batch.y.tolist(), pred[index].tolist(), index.tolist(), strict=True
        )
    )
