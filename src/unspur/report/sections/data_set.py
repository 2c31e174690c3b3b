"""A data set: its sizes, how class and attributes go together in training, and training images of every group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from unspur.data.base import Dataset, Split, aligned_with
from unspur.report.context import DataContext, first_line
from unspur.report.group_rows import shuffled, split_rows
from unspur.report.pictures import drawable, picture
from unspur.report.section import Section
from unspur.report.settings import plain

WIDEST = 12  # classes or values in a table of counts
SAMPLES = 12  # training images shown of each group


@dataclass(frozen=True)
class Counts:
    """How often each class goes with each value of an attribute in training; aligned pairs are marked."""

    attribute: str
    values: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[int, bool], ...]], ...]


@dataclass(frozen=True)
class SampleRow:
    """Some training images of one group, and how many there are."""

    title: str
    aligned: bool | None
    count: int
    images: tuple[str, ...]


@dataclass(frozen=True)
class DataView:
    about: str
    shape: str
    sizes: tuple[tuple[str, int], ...]
    counts: tuple[Counts, ...]
    pooled: bool
    samples: tuple[SampleRow, ...]


def view(context: DataContext) -> DataView:
    data, shape = context.data, context.data.sample_shape
    pooled, rows = samples(data)
    if context.drawn:
        size = f"{shape[2]} x {shape[1]} pixels, {'grey' if shape[0] == 1 else 'colour'}"
    else:
        size = f"{plain(tuple(shape))} numbers"
    return DataView(
        about=first_line(context.spec),
        shape=size,
        sizes=tuple((name, len(split)) for name, split in _splits(data)),
        counts=_counts(data),
        pooled=pooled,
        samples=rows,
    )


def samples(data: Dataset) -> tuple[bool, tuple[SampleRow, ...]]:
    """Training images of every group, drawn at random; whether the groups had to be pooled."""
    pooled, rows = split_rows(data.train, data)
    generator = torch.Generator().manual_seed(0)
    shown = []
    for title, aligned, members in rows:
        some = data.train.x[shuffled(members, generator)[:SAMPLES]] if drawable(data.sample_shape) else ()
        shown.append(SampleRow(title, aligned, len(members), tuple(picture(image) for image in some)))
    return pooled, tuple(shown)


def _splits(data: Dataset) -> Iterator[tuple[str, Split]]:
    yield "training", data.train
    yield "validation", data.val
    yield from ((f"test “{name}”", test) for name, test in data.tests.items())


def _counts(data: Dataset) -> tuple[Counts, ...]:
    tables = []
    for name, column in data.train.attributes.items():
        classes, values = len(data.classes), len(data.attribute_values[name])
        if max(classes, values) > WIDEST:
            continue
        count = torch.bincount(data.train.y * values + column, minlength=classes * values).reshape(classes, values)
        y, value = torch.arange(classes).repeat_interleave(values), torch.arange(values).repeat(classes)
        train = Split(data.train.x, data.train.y, {name: column})
        aligned = aligned_with(train, Split(torch.zeros(len(y), 1), y, {name: value}))
        marks = torch.zeros_like(count) if aligned is None else aligned.reshape(classes, values)
        # A value that training never shows, such as "grey" in a test set, has no column.
        shown = [v for v in range(values) if count[:, v].any()]
        rows = [(data.classes[c], tuple((int(count[c, v]), bool(marks[c, v])) for v in shown)) for c in range(classes)]
        tables.append(Counts(name, tuple(data.attribute_values[name][v] for v in shown), tuple(rows)))
    return tuple(tables)


DATA_SET = Section("data_set", view)
