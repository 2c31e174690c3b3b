"""Samples sorted into the rows in which the page shows them: by group, or pooled where there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from unspur.data.base import Dataset, Split, aligned_with, groups_of

MOST_ROWS = 12  # with more groups than this, samples are shown as aligned and conflicting only


class Row(NamedTuple):
    """Samples of a kind: what to call them, whether they follow the training correlation, and their numbers."""

    title: str
    aligned: bool | None
    samples: Tensor


class Rows(NamedTuple):
    """All samples of a split in rows; ``pooled`` says that there were too many groups to show each."""

    pooled: bool
    rows: list[Row]


def split_rows(split: Split, data: Dataset) -> Rows:
    """A row for each group; of too many, one for all that follow the training correlation and one for the rest."""
    groups, known = groups_of(split), bool(split.attributes) and set(split.attributes) == set(data.train.attributes)
    aligned = aligned_with(data.train, split) if known else None
    if len(groups.keys) <= MOST_ROWS:
        members = [(groups.id == number).nonzero().squeeze(1) for number in range(len(groups.keys))]
        follows = [None if aligned is None else bool(aligned[samples[0]]) for samples in members]
        titles = [_title(key, split, data) for key in groups.keys]
        return Rows(False, [Row(*row) for row in zip(titles, follows, members, strict=True)])
    if aligned is None:
        return Rows(True, [Row("all classes", None, torch.arange(len(split)))])
    halves = [("all aligned groups", True, aligned), ("all conflicting groups", False, ~aligned)]
    return Rows(True, [Row(title, follows, mask.nonzero().squeeze(1)) for title, follows, mask in halves if mask.any()])


def _title(key: Sequence[int], split: Split, data: Dataset) -> str:
    label, *values = key
    named = [
        f"{name}: {data.attribute_values[name][value]}" for name, value in zip(split.attributes, values, strict=True)
    ]
    return ", ".join([data.classes[label], *named])


def shuffled(samples: Tensor, generator: torch.Generator) -> Tensor:
    """The same sample numbers in random order."""
    return samples[torch.randperm(len(samples), generator=generator)]
