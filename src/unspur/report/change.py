"""Before and after a repair: the same images with both models' maps, and what was hidden of training images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unspur.data.base import Dataset, Split
from unspur.data.masks import BitMask
from unspur.evaluation import predict
from unspur.report.gallery import Layer, explainer, split_rows
from unspur.report.pictures import heat, picture

SHOWN = 4  # images of each group


@dataclass(frozen=True)
class Pair:
    """One test image with the maps and answers of the model before and after."""

    image: str
    before: Layer
    after: Layer
    truth: str
    said_before: str
    said_after: str
    index: int


@dataclass(frozen=True)
class PairRow:
    title: str
    aligned: bool | None
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Hidden:
    """One training image as it is and as the repair showed it to the model."""

    image: str
    masked: str
    label: str


@dataclass(frozen=True)
class Change:
    """What a repair changed."""

    test: str
    rows: tuple[PairRow, ...]
    hidden: tuple[Hidden, ...]


def change(before: nn.Module, after: nn.Module, data: Dataset, test_name: str, mask_bits: Tensor | None) -> Change:
    """Both models on the same images of every group of a test set, and masks of training images."""
    test = data.tests[test_name]
    generator = torch.Generator().manual_seed(0)
    said = predict(before, test).argmax(1)
    rows = []
    for title, aligned, members in split_rows(test, data).rows:
        order = members[torch.randperm(len(members), generator=generator)]
        # What the model got wrong before comes first: there is most to see.
        order = order[(said[order] == test.y[order]).int().argsort(stable=True)]
        rows.append(PairRow(title, aligned, _pairs(before, after, test, order[:SHOWN], data.classes)))
    hidden = () if mask_bits is None else _hidden(data.train, mask_bits, data.classes)
    return Change(test_name, tuple(rows), hidden)


def _pairs(before: nn.Module, after: nn.Module, test: Split, index: Tensor, classes: Sequence[str]) -> tuple[Pair, ...]:
    part = test.subset(index)
    x = part.batch(torch.arange(len(part))).x
    looks = [explainer(model, part.sample_shape) for model in (before, after)]
    said = [predict(model, part).argmax(1).tolist() for model in (before, after)]
    maps = [look.maps(x) for look in looks]
    return tuple(
        Pair(
            picture(part.x[torch.tensor([place])][0]),
            Layer(looks[0].name, heat(maps[0][place])),
            Layer(looks[1].name, heat(maps[1][place])),
            classes[int(part.y[place])],
            classes[said[0][place]],
            classes[said[1][place]],
            int(index[place]),
        )
        for place in range(len(part))
    )


def _hidden(train: Split, mask_bits: Tensor, classes: Sequence[str]) -> tuple[Hidden, ...]:
    """Two images of each class, drawn at random, with what the masks hide blackened."""
    shape = (train.sample_shape[1], train.sample_shape[2])
    generator = torch.Generator().manual_seed(0)
    shown = []
    for label in range(min(len(classes), 6)):
        members = (train.y == label).nonzero().squeeze(1)
        for number in members[torch.randperm(len(members), generator=generator)[:2]]:
            index = number.reshape(1)
            image = train.x[index][0]
            keep = BitMask(mask_bits, shape).keep(index)[0]
            shown.append(Hidden(picture(image), picture((image * keep).to(torch.uint8)), classes[label]))
    return tuple(shown)
