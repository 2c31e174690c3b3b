"""Shortcuts drawn into images: a square, a code, a colour, a second image.

A shortcut is a frozen dataclass. ``apply(images, values, generator)`` returns new images and leaves the old ones as
they are; images are bytes, (n, 1 or 3, height, width), and whatever needs colour turns grey ones into RGB. ``region``
says which pixels it draws.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import torch
from torch import Tensor

from unspur.data.base import Images
from unspur.errors import require

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

    def region(self, sample_shape: torch.Size) -> Tensor | None:
        """The pixels (height, width) of a planted image that show the shortcut; None if they also show the class."""
        ...


@dataclass(frozen=True)
class Square:
    """A coloured square where the value is 1, nothing where it is 0."""

    row: int = 0  # of its upper left pixel; negative: counted from the far edge
    column: int = 0
    size: int = 4
    colour: Colour = (0, 0, 255)

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        planted = to_rgb(images).clone()
        colour = torch.tensor(self.colour, dtype=torch.uint8).reshape(1, 3, 1, 1)
        patch = planted[:, :, *self._place(images.shape)]
        patch.copy_(torch.where(values.reshape(-1, 1, 1, 1) == 1, colour, patch))
        return planted

    def region(self, sample_shape: torch.Size) -> Tensor:
        return pixels_at(sample_shape, *self._place(sample_shape))

    def _place(self, shape: torch.Size) -> tuple[slice, slice]:
        height, width = shape[-2:]
        top, left = self.row % height, self.column % width
        require(
            -height <= self.row and -width <= self.column and top + self.size <= height and left + self.size <= width,
            f"A square of {self.size} pixels at row {self.row}, column {self.column} does not fit into images of "
            f"{height}x{width}.",
        )
        return slice(top, top + self.size), slice(left, left + self.size)


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

    def region(self, sample_shape: torch.Size) -> Tensor:
        return pixels_at(sample_shape, slice(1), slice(self.values))


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

    def region(self, sample_shape: torch.Size) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Companion:
    """A second image of the value's class beside the first (a second digit) or above or below it (a domino)."""

    where: Literal["left", "right", "above", "below"] = "right"
    pool: Images | None = None  # from which the second image is drawn; images as large as the first ones

    def drawing_from(self, pool: Images) -> Companion:
        """The same shortcut with images to draw from."""
        return replace(self, pool=pool)

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        assert self.pool is not None, "drawing_from names the images"
        second = self.pool.x[draw_of_class(self.pool.y, values, generator)]
        if second.shape[1] != images.shape[1]:
            images, second = to_rgb(images), to_rgb(second)
        pair = [second, images] if self.where in ("left", "above") else [images, second]
        return torch.cat(pair, dim=3 if self.where in ("left", "right") else 2)

    def region(self, sample_shape: torch.Size) -> Tensor:
        height, width = sample_shape[-2] // 2, sample_shape[-1] // 2
        everything = slice(None)
        halves = {
            "left": (everything, slice(width)),
            "right": (everything, slice(width, None)),
            "above": (slice(height), everything),
            "below": (slice(height, None), everything),
        }
        return pixels_at(sample_shape, *halves[self.where])


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


def pixels_at(sample_shape: torch.Size, rows: slice, columns: slice) -> Tensor:
    """A mask (height, width) of the pixels in these rows and columns.

    >>> pixels_at(torch.Size([3, 2, 3]), slice(1), slice(2)).int().tolist()
    [[1, 1, 0], [0, 0, 0]]
    """
    mask = torch.zeros(tuple(sample_shape[-2:]), dtype=torch.bool)
    mask[rows, columns] = True
    return mask
