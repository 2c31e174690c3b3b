"""The swap test: give an image the cue of another class; does the prediction follow?

The control gives it the cue of another image of its own class, so that the harm which swapping itself does to an image
counts on both sides.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unspur.core.seeds import stream
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.findings import Finding, Reliance
from unspur.practice.audit.model import BATCH, Model
from unspur.practice.audit.suspects import contradiction

MOST = 400  # images that cues are swapped into
RESAMPLES = 1_000  # of the bootstrap


def swap_test(model: Model, finding: Finding, data: Collected, *, seed: int = 0) -> Reliance | None:
    """How far ``model`` follows the finding's cue, on images that it was not trained on.

    Donors show the cue that is usual in their class. None where a class has too few of them.
    """
    if finding.cue is None:
        return None
    generator, differences, follows, controls = stream(seed, "swap test"), [], 0.0, 0.0
    for predict, part in zip(model.predict, model.parts, strict=True):
        chosen, (wanted, other, own) = _drawn(model, part, finding, data, generator)
        if other is None or own is None:
            return None
        for rows in torch.arange(len(chosen)).split(BATCH):
            images, foreign, same = (data.pictures[part[index[rows]]].float() / 255 for index in (chosen, other, own))
            followed = predict(finding.cue.swap(images, foreign)).argmax(1) == wanted[rows]
            stayed = predict(finding.cue.swap(images, same)).argmax(1) == wanted[rows]
            differences.append(followed.float() - stayed.float())
            follows, controls = follows + float(followed.sum()), controls + float(stayed.sum())
    difference = torch.cat(differences)
    n = len(difference)
    return Reliance(follows / n, controls / n, bootstrap(difference, generator), n)


class Swap(NamedTuple):
    """One image of the swap test: floats (3, s, s), and what the model says before and after."""

    image: Tensor
    donor: Tensor
    changed: Tensor
    label: int
    donor_label: int
    before: int
    after: int


def swap_examples(model: Model, finding: Finding, data: Collected, *, seed: int = 0) -> list[Swap]:
    """The first images that ``swap_test`` swaps the cue of; none where it cannot."""
    part, predict = model.parts[0], model.predict[0]
    chosen, (wanted, other, _) = _drawn(model, part, finding, data, stream(seed, "swap test"))
    if finding.cue is None or other is None:
        return []
    rows = slice(0, BATCH)
    images, donors = (data.pictures[part[index[rows]]].float() / 255 for index in (chosen, other))
    changed = finding.cue.swap(images, donors)
    labels = data.y[data.pictured[part[chosen[rows]]]]
    before, after = predict(images).argmax(1), predict(changed).argmax(1)
    codes = torch.stack([labels, wanted[rows], before, after], 1).tolist()
    return [Swap(a, b, c, *four) for a, b, c, four in zip(images, donors, changed, codes, strict=True)]


def _drawn(
    model: Model, part: Tensor, finding: Finding, data: Collected, generator: torch.Generator
) -> tuple[Tensor, tuple[Tensor, Tensor | None, Tensor | None]]:
    """Which pictures of ``part`` get a cue, the class that it comes from, and donors that show the usual one."""
    usual = torch.ones(len(data.y), dtype=torch.bool)
    usual[finding.index] = contradiction(finding, data.y) <= 0
    y, good = data.y[data.pictured[part]], usual[data.pictured[part]]
    chosen = torch.randperm(len(part), generator=generator)[: MOST // len(model.parts)]
    return chosen, _donors(y, good, chosen, len(data.classes), generator)


def _donors(
    y: Tensor, good: Tensor, chosen: Tensor, classes: int, generator: torch.Generator
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """For each chosen image another class, a donor of that class, and a donor of its own class."""
    pools = [((y == label) & good).nonzero().squeeze(1) for label in range(classes)]
    if min(len(pool) for pool in pools) < 2:
        return y, None, None
    shift = torch.randint(1, classes, (len(chosen),), generator=generator)
    wanted = (y[chosen] + shift) % classes
    draw = torch.rand(2, len(chosen), generator=generator)
    other = torch.stack([pools[int(k)][int(u * len(pools[int(k)]))] for k, u in zip(wanted, draw[0], strict=True)])
    own = torch.stack([pools[int(k)][int(u * len(pools[int(k)]))] for k, u in zip(y[chosen], draw[1], strict=True)])
    return wanted, other, own


def bootstrap(values: Tensor, generator: torch.Generator) -> tuple[float, float]:
    """A 95 % interval of the mean, from resampled values."""
    rows = torch.randint(len(values), (RESAMPLES, len(values)), generator=generator)
    means = values[rows].mean(1)
    low, high = torch.quantile(means, torch.tensor([0.025, 0.975]))
    return float(low), float(high)
