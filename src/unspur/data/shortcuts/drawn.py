"""Plant a shortcut in any images: first which value of it each sample gets, then drawing that value.

A shortcut is a frozen dataclass with ``apply(images, values, generator)``, which returns new images and leaves the old
ones as they are. Images are bytes, (n, 1 or 3, height, width); whatever needs colour turns grey images into RGB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from unspur.data.base import stratified_split
from unspur.errors import UnspurError, require

Colour = tuple[int, int, int]

TEN_COLOURS: dict[str, Colour] = {  # as far apart as ten colours can be that all show on black
    "red": (230, 25, 40),
    "green": (40, 180, 60),
    "yellow": (255, 225, 25),
    "blue": (30, 70, 240),
    "orange": (245, 130, 40),
    "purple": (140, 30, 180),
    "cyan": (60, 240, 240),
    "magenta": (245, 50, 230),
    "lime": (180, 255, 80),
    "pink": (250, 180, 200),
}
CHUNK = 2000  # images that are turned into floats at a time


class Shortcut(Protocol):
    """Something that can be drawn into images."""

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        """New images in which each sample shows its value."""
        ...


def check_conflict(conflict: float | None, conflict_count: int | None) -> None:
    """An error unless at most one is given and it makes sense."""
    require(
        conflict is None or conflict_count is None,
        f"Give conflict or conflict_count, not both: got conflict={conflict} and conflict_count={conflict_count}.",
    )
    require(
        conflict is None or 0 <= conflict <= 1,
        f"conflict is a share and must be between 0 and 1 but got {conflict}.",
    )
    require(
        conflict_count is None or conflict_count >= 0, f"conflict_count must be at least 0 but got {conflict_count}."
    )


def assign(
    y: Tensor,
    values: int,
    generator: torch.Generator,
    *,
    conflict: float | None = None,
    conflict_count: int | None = None,
    aligned: Tensor | None = None,
) -> Tensor:
    """One of ``values`` for each sample: its label's own, but for an exact number of conflicting samples.

    ``conflict`` is their share, ``conflict_count`` (instead) their number. Every class has its part of them, as near as
    whole samples allow, and each takes one of the other values, all equally likely. ``aligned[label]`` is the label's
    own value; without it, that is the label itself.

    >>> y = torch.tensor([0, 0, 1, 1])
    >>> assign(y, 2, torch.Generator(), conflict=0.5).eq(y).tolist().count(False)
    2
    """
    check_conflict(conflict, conflict_count)
    if conflict is not None:
        count = round(conflict * len(y))
    elif conflict_count is not None:
        count = conflict_count
    else:
        raise UnspurError("Give conflict, a share, or conflict_count, a number.")
    require(count <= len(y), f"conflict_count must be at most the {len(y)} samples but got {count}.")
    own = y if aligned is None else aligned[y]
    require(bool((own < values).all()), f"A shortcut of {values} values has too few of them for the labels.")
    require(count == 0 or values > 1, "A shortcut with a single value cannot conflict with anything.")
    assigned = own.clone()
    conflicting = torch.arange(len(y)) if count == len(y) else stratified_split(y, count, generator)[1]
    if len(conflicting):
        away = torch.randint(1, values, (len(conflicting),), generator=generator)
        assigned[conflicting] = (own[conflicting] + away) % values
    return assigned


def assign_evenly(y: Tensor, values: int, generator: torch.Generator) -> Tensor:
    """One of ``values`` for each sample, independent of the label: in every class all values equally often (give or
    take one sample)."""
    assigned = torch.empty_like(y)
    for label in y.unique().tolist():
        members = (y == label).nonzero().squeeze(1)
        order = torch.randperm(values, generator=generator)  # which values get the samples that are left over
        spread = order[torch.arange(len(members)) % values]
        assigned[members[torch.randperm(len(members), generator=generator)]] = spread
    return assigned


def assign_part(
    part: str,
    y: Tensor,
    values: int,
    generator: torch.Generator,
    *,
    training: int,
    conflict: float | None,
    conflict_count: int | None,
) -> Tensor:
    """Values for a part of a data set: independent of the label in "test", and elsewhere conflicting as in training.

    ``conflict_count`` is the exact number in "train", of ``training`` samples; other parts then have the same share.
    """
    if part == "test":
        return assign_evenly(y, values, generator)
    if conflict_count is not None and part != "train":
        return assign(y, values, generator, conflict=conflict_count / training)
    return assign(y, values, generator, conflict=conflict, conflict_count=conflict_count)


@dataclass(frozen=True)
class Square:
    """A coloured square where the value is 1, nothing where it is 0."""

    row: int = 0  # of its upper left pixel; negative: counted from the far edge
    column: int = 0
    size: int = 4
    colour: Colour = (0, 0, 255)

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        height, width = images.shape[2:]
        top, left = self.row % height, self.column % width
        require(
            -height <= self.row and -width <= self.column and top + self.size <= height and left + self.size <= width,
            f"A square of {self.size} pixels at row {self.row}, column {self.column} does not fit into images of "
            f"{height}x{width}.",
        )
        planted = to_rgb(images).clone()
        colour = torch.tensor(self.colour, dtype=torch.uint8).reshape(1, 3, 1, 1)
        patch = planted[:, :, top : top + self.size, left : left + self.size]
        patch.copy_(torch.where(values.reshape(-1, 1, 1, 1) == 1, colour, patch))
        return planted


@dataclass(frozen=True)
class OneHotCode:
    """The value written into the top row: 255 in the column of that number, 0 in the other columns of the code."""

    values: int = 10

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        width = images.shape[3]
        require(self.values <= width, f"A code of {self.values} values does not fit into images {width} pixels wide.")
        planted = images.clone()
        code = torch.zeros(len(images), self.values, dtype=torch.uint8)
        code[torch.arange(len(images)), values] = 255
        planted[:, :, 0, : self.values] = code.unsqueeze(1)
        return planted


@dataclass(frozen=True)
class Tint:
    """The image in the value's colour, which varies a little from sample to sample."""

    colours: tuple[Colour, ...] = tuple(TEN_COLOURS.values())
    jitter: float = 0.005  # standard deviation of each channel of the colour, 1 being full brightness

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        mean = torch.tensor(self.colours)[values] / 255
        colour = (mean + self.jitter * torch.randn(mean.shape, generator=generator)).clamp_(0, 1)
        planted = torch.empty(len(images), 3, *images.shape[2:], dtype=torch.uint8)
        parts = (planted.split(CHUNK), images.split(CHUNK), colour[:, :, None, None].split(CHUNK))
        for into, pixels, tint in zip(*parts, strict=True):
            into.copy_((pixels * tint).round_())
        return planted


@dataclass(frozen=True, eq=False)
class Companion:
    """A second image of the value's class beside the first (a second digit) or above or below it (a domino)."""

    images: Tensor  # from which the second image is drawn
    labels: Tensor
    where: Literal["left", "right", "above", "below"] = "right"

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        second = self.images[draw_of_class(self.labels, values, generator)]
        if second.shape[1] != images.shape[1]:
            images, second = to_rgb(images), to_rgb(second)
        pair = [second, images] if self.where in ("left", "above") else [images, second]
        return torch.cat(pair, dim=3 if self.where in ("left", "right") else 2)


def draw_of_class(labels: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
    """For each of ``values`` the number of a sample whose label it is, all of them equally likely."""
    counts = torch.bincount(labels, minlength=int(values.max()) + 1 if len(values) else 1)
    for value in values.unique().tolist():
        require(int(counts[value]) > 0, f"There is no image of class {value} to put beside another.")
    place = (torch.rand(len(values), generator=generator, dtype=torch.float64) * counts[values]).long()
    first = counts.cumsum(0) - counts
    return labels.argsort(stable=True)[first[values] + place]


def to_rgb(images: Tensor) -> Tensor:
    """Grey images with three equal channels; others as they are."""
    return images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
