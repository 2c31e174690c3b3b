"""The swap test: give an image the cue of another class; does the prediction follow?

The control gives it the cue of another image of its own class, so the harm that swapping itself does to an image counts
on both sides. A mark that few images of one class have is pasted from those into images of other classes; its control
covers the same place with an ordinary image of the receiving image's class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from unspur.core.seeds import stream
from unspur.parts.cues.base import Cue
from unspur.parts.cues.region import Region
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.findings import RARE, Finding, Reliance
from unspur.practice.audit.model import BATCH, Model
from unspur.practice.audit.suspects import contradiction

MOST = 400  # images into which cues are swapped
FEWEST = 2  # donors of a class
RESAMPLES = 1_000  # of the bootstrap


def swap_test(model: Model, finding: Finding, data: Collected, *, seed: int = 0) -> Reliance | None:
    """How far ``model`` follows the finding's cue, on images that it was not trained on.

    Donors show the cue that is usual in their class. None if a class has too few of them.
    """
    if finding.cue is None:
        return None
    generator, differences, follows, controls = stream(seed, "swap test"), [], 0.0, 0.0
    for predict, part in zip(model.predict, model.parts, strict=True):
        drawn = _drawn(model, part, finding, data, generator)
        if drawn is None:
            return None
        for rows in torch.arange(len(drawn.chosen)).split(BATCH):
            images, foreign, same = (
                data.pictures[part[index[rows]]].float() / 255 for index in (drawn.chosen, drawn.other, drawn.own)
            )
            followed = predict(finding.cue.swap(images, foreign)).argmax(1) == drawn.wanted[rows]
            stayed = predict(_control(finding, finding.cue, images, foreign, same)).argmax(1) == drawn.wanted[rows]
            differences.append(followed.float() - stayed.float())
            follows, controls = follows + float(followed.sum()), controls + float(stayed.sum())
    difference = torch.cat(differences)
    n = len(difference)
    return Reliance(follows / n, controls / n, bootstrap(difference, generator), n)


def _control(finding: Finding, cue: Cue, images: Tensor, foreign: Tensor, same: Tensor) -> Tensor:
    """The images with the cue of their own class, or with the place of a rare mark covered."""
    if finding.family == RARE and isinstance(cue, Region):
        return cue.cover(images, foreign, same)
    return cue.swap(images, same)


class Swap(NamedTuple):
    """One image of the swap test: floats (3, s, s), and the prediction before and after."""

    image: Tensor
    donor: Tensor
    changed: Tensor
    label: int
    donor_label: int
    before: int
    after: int


def swap_examples(model: Model, finding: Finding, data: Collected, *, seed: int = 0) -> list[Swap]:
    """The first images whose cue ``swap_test`` swaps; none if it cannot be done."""
    part, predict = model.parts[0], model.predict[0]
    drawn = _drawn(model, part, finding, data, stream(seed, "swap test"))
    if finding.cue is None or drawn is None:
        return []
    rows = slice(0, BATCH)
    images, donors = (data.pictures[part[index[rows]]].float() / 255 for index in (drawn.chosen, drawn.other))
    changed = finding.cue.swap(images, donors)
    labels = data.y[data.pictured[part[drawn.chosen[rows]]]]
    before, after = predict(images).argmax(1), predict(changed).argmax(1)
    codes = torch.stack([labels, drawn.wanted[rows], before, after], 1).tolist()
    return [Swap(a, b, c, *four) for a, b, c, four in zip(images, donors, changed, codes, strict=True)]


class _Drawn(NamedTuple):
    """Places in a part of the pictures: which get a cue, the class that it comes from, and donors."""

    chosen: Tensor
    wanted: Tensor
    other: Tensor  # donors of the wanted class
    own: Tensor  # donors of the image's own class


def _drawn(model: Model, part: Tensor, finding: Finding, data: Collected, generator: torch.Generator) -> _Drawn | None:
    """Donors show the cue that is usual in their class, or the rare mark; None if there are too few of them."""
    y, classes, most = data.y[data.pictured[part]], len(data.classes), MOST // len(model.parts)
    if finding.family == RARE:
        margins = torch.zeros(len(data.y), classes)
        margins[finding.index] = finding.margins
        return _drawn_for_mark(y, margins[data.pictured[part]], most, generator)
    usual = torch.ones(len(data.y), dtype=torch.bool)
    usual[finding.index] = contradiction(finding, data.y) <= 0
    good = usual[data.pictured[part]]
    chosen = torch.randperm(len(part), generator=generator)[:most]
    pools = [((y == label) & good).nonzero().squeeze(1) for label in range(classes)]
    if min(len(pool) for pool in pools) < FEWEST:
        return None
    wanted = (y[chosen] + torch.randint(1, classes, (len(chosen),), generator=generator)) % classes
    draw = torch.rand(2, len(chosen), generator=generator)
    return _Drawn(chosen, wanted, _picked(pools, wanted, draw[0]), _picked(pools, y[chosen], draw[1]))


def _drawn_for_mark(y: Tensor, margins: Tensor, most: int, generator: torch.Generator) -> _Drawn | None:
    """Images without the mark, of other classes than the one that has it; donors with it, and ordinary ones."""
    label, has = int(margins.amax(0).argmax()), margins.amax(1) > 0
    marked = (has & (y == label)).nonzero().squeeze(1)
    pools = {other: ((y == other) & ~has).nonzero().squeeze(1) for other in y.unique().tolist() if other != label}
    if len(marked) < FEWEST or min(map(len, pools.values()), default=0) < FEWEST:
        return None
    plain = torch.cat(list(pools.values()))
    chosen = plain[torch.randperm(len(plain), generator=generator)[:most]]
    draw = torch.rand(2, len(chosen), generator=generator)
    wanted = torch.full_like(chosen, label)
    return _Drawn(chosen, wanted, _picked({label: marked}, wanted, draw[0]), _picked(pools, y[chosen], draw[1]))


def _picked(pools: Sequence[Tensor] | Mapping[int, Tensor], labels: Tensor, draw: Tensor) -> Tensor:
    """For each label one member of its pool, chosen by a number in [0, 1)."""
    return torch.stack(
        [pools[label][int(u * len(pools[label]))] for label, u in zip(labels.tolist(), draw, strict=True)]
    )


def bootstrap(values: Tensor, generator: torch.Generator) -> tuple[float, float]:
    """A 95 % interval of the mean, from resampled values."""
    rows = torch.randint(len(values), (RESAMPLES, len(values)), generator=generator)
    means = values[rows].mean(1)
    low, high = torch.quantile(means, torch.tensor([0.025, 0.975]))
    return float(low), float(high)
