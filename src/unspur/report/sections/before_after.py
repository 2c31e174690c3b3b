"""A result beside what it began as or was trained beside: the same images with both models' maps and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.data.base import Dataset, Split
from unspur.data.masks import BitMask
from unspur.methods.facts import Role
from unspur.report.context import RunContext
from unspur.report.group_rows import shuffled, split_rows
from unspur.report.maps import Explainer, Layer, by_gradients
from unspur.report.pictures import heat, picture
from unspur.report.section import Section
from unspur.report.sections.headline import telling_test

SHOWN = 4  # images of each group
GRADIENTS = 8  # of these, about so many in all with input gradients, too
FINEST = 64  # pixels of the longer side of a gradient's map; of finer ones the largest value of each patch is shown


class Words(NamedTuple):
    """How the page says what is on the left and what, the result, on the right."""

    title: str
    sentence: str
    left: str
    right: str


WORDS: dict[Role, Words] = {
    "before": Words(
        "Before and after",
        "where the model looked before (left) and where the result looks (right)",
        "the model before",
        "the result",
    ),
    "student": Words(
        "Student and teacher",
        "where the student looks, which learnt whatever helps (left), and where the teacher looks, which was to "
        "unlearn that and is the result (right)",
        "the student",
        "the teacher",
    ),
}


class Side(NamedTuple):
    """One of the two models: how it is asked where it looks, and the class it predicts for each test image."""

    model: nn.Module
    explain: Explainer
    predicted: Tensor


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
    """One training image as it is and as it was shown to the model."""

    image: str
    masked: str
    label: str


@dataclass(frozen=True)
class BeforeAfter:
    """Two models on the same images."""

    words: Words
    test: str
    images: int
    changed: int  # images of the test set for which the two predict different classes
    rows: tuple[PairRow, ...]
    gradients: tuple[Pair, ...]  # some of the same images with input gradients
    hidden: tuple[Hidden, ...]


def view(run: RunContext) -> BeforeAfter:
    assert run.baseline is not None  # or the section does not apply
    stage, test = run.baseline["stage"], (telling_test(run.tests) or run.tests[0]).name
    before, after = (Side(run.model(s), run.explainer(s), run.logits(test, s).argmax(1)) for s in (stage, None))
    return before_after(run.baseline["role"], before, after, run.data.data, test, run.artifact("mask_bits"))


def before_after(
    role: Role, before: Side, after: Side, data: Dataset, test_name: str, mask_bits: Tensor | None = None
) -> BeforeAfter:
    """Both models on the same images of every group of a test set, and what was hidden of training images.

    Input gradients are shown of a student, since it is those that the result was driven away from (ULE, Figure 2).
    """
    test, sides = data.tests[test_name], (before, after)
    by_gradient = [side._replace(explain=_coarse(by_gradients(side.model))) for side in sides]
    gradients = role == "student" and [s.explain.name for s in by_gradient] != [s.explain.name for s in sides]
    generator = torch.Generator().manual_seed(0)
    rows: list[PairRow] = []
    more: list[Pair] = []
    groups = split_rows(test, data).rows
    for title, aligned, members in groups:
        order = shuffled(members, generator)
        # What the model got wrong before comes first: there is most to see.
        order = order[(before.predicted[order] == test.y[order]).int().argsort(stable=True)]
        rows.append(PairRow(title, aligned, _pairs(sides, test, order[:SHOWN], data.classes)))
        if gradients:
            more += _pairs(by_gradient, test, order[: max(1, GRADIENTS // len(groups))], data.classes)
    hidden = () if mask_bits is None else _hidden(data.train, mask_bits, data.classes)
    changed = int((before.predicted != after.predicted).sum())
    return BeforeAfter(WORDS[role], test_name, len(test), changed, tuple(rows), tuple(more), hidden)


def _coarse(look: Explainer) -> Explainer:
    """``look`` with maps of at most FINEST pixels on a side."""

    def maps(x: Tensor) -> Tensor:
        fine = look.maps(x)
        scale = min(1.0, FINEST / max(fine.shape[1:]))
        size = [max(1, round(length * scale)) for length in fine.shape[1:]]
        return functional.adaptive_max_pool2d(fine, size)

    return look._replace(maps=maps)


def _pairs(sides: Sequence[Side], test: Split, index: Tensor, classes: Sequence[str]) -> tuple[Pair, ...]:
    batch, images = test.batch(index), test.x[index]
    maps = [side.explain.maps(batch.x) for side in sides]
    before, after = sides
    return tuple(
        Pair(
            picture(images[place]),
            Layer(before.explain.name, heat(maps[0][place])),
            Layer(after.explain.name, heat(maps[1][place])),
            classes[int(test.y[number])],
            classes[int(before.predicted[number])],
            classes[int(after.predicted[number])],
            number,
        )
        for place, number in enumerate(index.tolist())
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


BEFORE_AFTER = Section("before_after", view, lambda run: run.baseline is not None and run.data.drawn)
