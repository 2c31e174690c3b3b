"""A repair beside what it began with or learnt from: the same images with both models' maps and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.files import read_tensors
from unspur.data.base import Dataset, Split
from unspur.data.masks import BitMask
from unspur.evaluation.scores import predict
from unspur.report.gallery import Explainer, Layer, by_gradients, explainer, split_rows
from unspur.report.pictures import heat, picture
from unspur.runs.folder import Run

SHOWN = 4  # images of each group
GRADIENTS = 8  # of these, about so many in all with input gradients, too
FINEST = 64  # pixels of the longer side of a gradient's map; of finer ones the largest value of each patch is shown


class Words(NamedTuple):
    """How the page tells what is on the left and what, the result, on the right."""

    title: str
    sentence: str
    left: str
    right: str


# The stages that a result is compared with, and how that is told.
COMPARED = {
    "erm": Words(
        "Before and after",
        "where the model looked after plain training (left) and where the result looks (right)",
        "plain training",
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
UNLEARNT = "student"  # the stage whose gradients the result was driven away from (ULE, Figure 2)


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

    words: Words
    test: str
    rows: tuple[PairRow, ...]
    gradients: tuple[Pair, ...]  # some of the same images with input gradients
    hidden: tuple[Hidden, ...]


def changed(run: Run, data: Dataset, test: str) -> Change | None:
    """The result of a run beside the stage that it repairs or unlearns; None if there is no such stage."""
    stage = next((stage for stage in COMPARED if stage in run.stages()), None)
    if stage is None:
        return None
    path = run.folder / "artifacts" / "mask_bits.safetensors"
    bits = read_tensors(path)[0]["mask_bits"] if path.exists() else None
    return change(stage, run.load_model(data, stage), run.load_model(data), data, test, bits)


def change(
    stage: str, before: nn.Module, after: nn.Module, data: Dataset, test_name: str, mask_bits: Tensor | None
) -> Change:
    """The model of ``stage`` and the result on the same images of every group of a test set, and what was hidden."""
    test, models = data.tests[test_name], (before, after)
    looks = [explainer(model, test.sample_shape) for model in models]
    gradients = [_coarse(by_gradients(model)) for model in models] if stage == UNLEARNT else []
    if [look.name for look in gradients] == [look.name for look in looks]:
        gradients = []  # the maps are gradients already
    generator = torch.Generator().manual_seed(0)
    said = predict(before, test).argmax(1)
    rows: list[PairRow] = []
    more: list[Pair] = []
    groups = split_rows(test, data).rows
    for title, aligned, members in groups:
        order = members[torch.randperm(len(members), generator=generator)]
        # What the model got wrong before comes first: there is most to see.
        order = order[(said[order] == test.y[order]).int().argsort(stable=True)]
        rows.append(PairRow(title, aligned, _pairs(models, looks, test, order[:SHOWN], data.classes)))
        if gradients:
            more += _pairs(models, gradients, test, order[: max(1, GRADIENTS // len(groups))], data.classes)
    hidden = () if mask_bits is None else _hidden(data.train, mask_bits, data.classes)
    return Change(COMPARED[stage], test_name, tuple(rows), tuple(more), hidden)


def _coarse(look: Explainer) -> Explainer:
    """``look`` with maps of at most FINEST pixels on a side."""

    def maps(x: Tensor) -> Tensor:
        fine = look.maps(x)
        scale = min(1.0, FINEST / max(fine.shape[1:]))
        size = [max(1, round(length * scale)) for length in fine.shape[1:]]
        return functional.adaptive_max_pool2d(fine, size)

    return look._replace(maps=maps)


def _pairs(
    models: Sequence[nn.Module], looks: Sequence[Explainer], test: Split, index: Tensor, classes: Sequence[str]
) -> tuple[Pair, ...]:
    part = test.subset(index)
    x = part.batch(torch.arange(len(part))).x
    said = [predict(model, part).argmax(1).tolist() for model in models]
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
