"""Marks in few images of one class and hardly any others: a place whose colour is far from the rest of its image.

Other tests find what most images of a class share, but a mark in one image of twenty moves no median. Natural colours
have tails, too; a mark differs in how far out its images lie: they form a separate group, not the end of a slope.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from unspur.parts.cues.standing_out import COLOURS, DIRECTIONS, StandsOut, stand_out
from unspur.practice.audit.rules import SIGNIFICANT

HUES = (
    (15, "red"),
    (45, "orange"),
    (70, "yellow"),
    (165, "green"),
    (190, "cyan"),
    (260, "blue"),
    (320, "purple"),
    (345, "pink"),
    (361, "red"),
)  # degrees at which a name ends
GREY = 0.15  # saturation below which a colour has no name of its own
RATIO = 8.0  # the mark's share in its class must be this many times its share in all other images
RARE = 0.2  # share of all images: a mark that more of them show is not rare
FEWEST = 10  # images with the mark
LEAST = 0.01  # a colour's deviation counts as at least this, so that trifles do not stand out among equal images


class Direction(NamedTuple):
    """A direction in which some images of a class go much further than nearly all others."""

    label: int
    name: str
    level: float  # what images with the mark exceed
    apart: float  # the median marked image above the class's median, in robust deviations
    p: float  # against permuted labels, corrected over directions and classes
    above: Tensor  # (n,) how far each image lies above the level
    shown: tuple[float, float, float]  # the median colour of the cells that show it most

    @property
    def colour(self) -> str:
        """What the mark looks like. The direction is only relative: on red skin, blue lies towards green."""
        return colour_name(*self.shown) if self.name in COLOURS else self.name


class RareMark(NamedTuple):
    """A mark of one class, in one or several colours; the colour that stands out most comes first."""

    directions: tuple[Direction, ...]
    y: Tensor

    @property
    def label(self) -> int:
        return self.directions[0].label

    @property
    def apart(self) -> float:
        return self.directions[0].apart

    @property
    def p(self) -> float:
        return self.directions[0].p

    @property
    def above(self) -> Tensor:
        """(n,) how far each image lies above the nearest level."""
        return torch.stack([each.above for each in self.directions]).amax(0)

    @property
    def marked(self) -> int:
        """Images of the class that have it."""
        return int(((self.above > 0) & (self.y == self.label)).sum())

    @property
    def others(self) -> int:
        """Images of other classes that have it."""
        return int(((self.above > 0) & (self.y != self.label)).sum())

    @property
    def colour(self) -> str:
        """What it looks like."""
        return " or ".join(dict.fromkeys(each.colour for each in self.directions))

    @property
    def region(self) -> StandsOut:
        """Where images show the mark."""
        return StandsOut(tuple((each.name, each.level) for each in self.directions))


class Levels(NamedTuple):
    """The level of one direction for each labelling and class: (labellings, classes); 0 if no level is good enough."""

    place: Tensor  # in the order of the values, the largest first
    inside: Tensor  # images of the class at or above it
    outside: Tensor  # others
    surprise: Tensor  # minus the log of the chance of these two numbers


def rare_mark(cells: Tensor, labels: Tensor, classes: int, least_share: float, least_apart: float) -> RareMark | None:
    """The mark that stands out most, of all marks in at least ``least_share`` of a class's images.

    ``cells`` are mean colours (n, GRID, GRID, 3), ``labels`` (n, 1 + permutations) the labels and then permutations of
    them. For each direction and class the level is the lowest at which the class's share is ``RATIO`` times that of the
    others; p is the share of permutations in which some direction and class is as surprising. A mark may come in
    several colours: a direction joins if it stands out by ``least_apart`` itself and adds at least ``FEWEST`` images.
    """
    (values, most), y = stand_out(cells.permute(0, 3, 1, 2)).flatten(2).max(2), labels[:, 0]
    orders = values.argsort(0, descending=True)
    found = [_levels(labels[order], classes, least_share) for order in orders.T]
    shown = cells.flatten(1, 2).gather(1, most.unsqueeze(2).expand(-1, -1, 3))
    by_chance = torch.stack([levels.surprise.amax(1)[1:] for levels in found]).amax(0)
    each = [
        _direction(values[:, number], orders[:, number], levels, y, label, number, by_chance, shown)
        for number, levels in enumerate(found)
        for label in levels.inside[0].nonzero().flatten().tolist()
    ]
    return _joined(sorted(each, key=lambda one: -one.apart), y, least_apart) if each else None


def _joined(found: Sequence[Direction], y: Tensor, least_apart: float) -> RareMark:
    """The first direction, joined by later ones that add images of the same class."""
    mark = RareMark((found[0],), y)
    for each in found[1:]:
        more = RareMark((*mark.directions, each), y)
        alike = each.label == mark.label and each.apart >= least_apart and each.p <= SIGNIFICANT
        mark = more if alike and more.marked >= mark.marked + FEWEST else mark
    return mark


def _levels(labels: Tensor, classes: int, least_share: float) -> Levels:
    """The lowest good level of each labelling (n, labellings) of sorted images, among the first ``RARE`` share."""
    n = len(labels)
    first = labels[: max(1, round(RARE * n))]
    rows = torch.arange(1, len(first) + 1).unsqueeze(1)
    parts = []
    for label in range(classes):
        own = first == label
        size = int((labels[:, 0] == label).sum())
        inside = own.cumsum(0)
        outside = rows - inside
        enough = own & (inside >= max(FEWEST, least_share * size)) & (inside / size >= RATIO * outside / (n - size))
        place = (enough * rows).amax(0)  # 0: none
        at = (place - 1).clamp_min(0).unsqueeze(0)
        counts = [count.gather(0, at).squeeze(0) * (place > 0) for count in (inside, outside)]
        surprise = _choose(n, counts[0] + counts[1]) - _choose(size, counts[0]) - _choose(n - size, counts[1])
        parts.append(torch.stack([place.double(), counts[0].double(), counts[1].double(), surprise]))
    place, inside, outside, surprise = torch.stack(parts, 2)
    return Levels(place.long(), inside.long(), outside.long(), surprise)


def _choose(n: int, k: Tensor) -> Tensor:
    """The log of the number of ways to choose k of n.

    >>> round(float(_choose(4, torch.tensor(2)).exp()), 6)
    6.0
    """
    k = k.double()
    return math.lgamma(n + 1) - (k + 1).lgamma() - (n - k + 1).lgamma()


def _direction(
    values: Tensor,
    order: Tensor,
    levels: Levels,
    y: Tensor,
    label: int,
    number: int,
    by_chance: Tensor,
    shown: Tensor,  # (n, directions, 3) the colour of the cell that lies furthest in each direction
) -> Direction:
    own, above = values[y == label], order[: int(levels.place[0, label])]
    marked = above[y[above] == label]
    red, green, blue = shown[marked, number].median(0).values.tolist()
    middle = own.median()
    spread = max(float(1.4826 * (own - middle).abs().median()), float(own.std()) / 4, LEAST)
    level = float(f"{float(values[above[-1]]) - 1e-6:.7g}")  # rounded as in its text
    return Direction(
        label=label,
        name=DIRECTIONS[number],
        level=level,
        apart=float(values[marked].median() - middle) / spread,
        p=float((1 + (by_chance >= levels.surprise[0, label]).sum()) / (1 + len(by_chance))),
        above=values - level,
        shown=(red, green, blue),
    )


def colour_name(red: float, green: float, blue: float) -> str:
    """A plain name of a colour in [0, 1].

    >>> colour_name(0.0, 0.6, 0.95), colour_name(0.9, 0.2, 0.1), colour_name(0.5, 0.5, 0.52)
    ('blue', 'red', 'grey')
    """
    hue, saturation, _ = colorsys.rgb_to_hsv(red, green, blue)
    if saturation < GREY:
        return "grey"
    return next(name for end, name in HUES if 360 * hue < end)
