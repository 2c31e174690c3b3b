"""Shortcuts for images of any size, as real data sets have them: corruptions, borders, watermarks, discs and others.

Like those of ``drawn.py`` each is a frozen dataclass with ``apply(images, values, generator)``. Measures are shares
of the image's shorter side, so that a shortcut looks the same in a small image and in a large one.
"""

from __future__ import annotations

import colorsys
import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.nn import functional

from unspur.core.progress import counting
from unspur.data.base import Images
from unspur.data.mini.digits import load_mini
from unspur.data.shortcuts.corruptions import CORRUPTIONS, corrupt
from unspur.data.shortcuts.disc import Disc
from unspur.data.shortcuts.drawn import TEN_COLOURS, Colour, Shortcut, Tint, draw_of_class, pixels_at, to_rgb
from unspur.errors import require, unknown


@dataclass(frozen=True)
class Corruption:
    """The image corrupted in the value's way, at severity 5."""

    names: tuple[str, ...] = tuple(CORRUPTIONS)

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        planted = to_rgb(images).clone()
        with counting("corrupting images", len(images)) as advance:
            for value in values.unique().tolist():
                chosen = (values == value).nonzero().squeeze(1)
                planted[chosen] = corrupt(planted[chosen], self.names[value], generator)
                advance(len(chosen))
        return planted

    def region(self, sample_shape: torch.Size) -> None:
        return None


@dataclass(frozen=True)
class ColouredSquare:
    """A square in the upper left corner, in the value's colour."""

    colours: tuple[Colour, ...] = tuple(TEN_COLOURS.values())
    share: float = 1 / 7  # of the shorter side

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        planted = to_rgb(images).clone()
        side = _pixels(images.shape, self.share)
        planted[:, :, :side, :side] = _bytes(self.colours)[values][:, :, None, None]
        return planted

    def region(self, sample_shape: torch.Size) -> Tensor:
        side = _pixels(sample_shape, self.share)
        return pixels_at(sample_shape, slice(side), slice(side))


@dataclass(frozen=True)
class Border:
    """A frame around the image, in the value's colour."""

    colours: tuple[Colour, ...] = tuple(TEN_COLOURS.values())
    share: float = 1 / 16  # of the shorter side

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        return torch.where(self.region(images.shape), _bytes(self.colours)[values][:, :, None, None], to_rgb(images))

    def region(self, sample_shape: torch.Size) -> Tensor:
        height, width = sample_shape[-2:]
        edge = _pixels(sample_shape, self.share)
        return ~pixels_at(sample_shape, slice(edge, height - edge), slice(edge, width - edge))


@dataclass(frozen=True)
class Watermark:
    """The value's text in the lower right corner, white with a dark outline, the image showing through a little."""

    texts: tuple[str, ...]
    share: float = 1 / 7  # the text's height, of the shorter side
    opacity: float = 0.8

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        planted = to_rgb(images).clone()
        for value in values.unique().tolist():
            ink, cover = self._text(value, images.shape)
            chosen = (values == value).nonzero().squeeze(1)
            cover = self.opacity * cover
            planted[chosen] = (planted[chosen] * (1 - cover) + ink * cover).round().to(torch.uint8)
        return planted

    def region(self, sample_shape: torch.Size) -> Tensor:
        covers = [self._text(value, sample_shape)[1][0] for value in range(len(self.texts))]
        return torch.stack(covers).amax(0) > 0

    def _text(self, value: int, shape: torch.Size) -> tuple[Tensor, Tensor]:
        height, width = shape[-2:]
        return _text(self.texts[value], _pixels(shape, self.share), height, width)


@dataclass(frozen=True)
class Domino:
    """One of the embedded digits above the image, as wide as the image; the value is the digit."""

    def apply(self, images: Tensor, values: Tensor, generator: torch.Generator) -> Tensor:
        digits, width = _digits(), images.shape[3]
        chosen = digits.x[draw_of_class(digits.y, values, generator)].float()
        wide = functional.interpolate(chosen, size=(width, width), mode="bilinear", antialias=True)
        return torch.cat([to_rgb(wide.round().clamp(0, 255).to(torch.uint8)), to_rgb(images)], dim=2)

    def region(self, sample_shape: torch.Size) -> Tensor:
        return pixels_at(sample_shape, slice(sample_shape[-1]), slice(None))  # a digit is as high as it is wide


class Choice(NamedTuple):
    """A shortcut with a value for each class, and the names of its values."""

    shortcut: Shortcut
    values: tuple[str, ...]


def shortcut_named(name: str, classes: int) -> Choice:
    """The shortcut ``name`` with a value for each of ``classes``.

    >>> shortcut_named("border", 2).values
    ('red', 'green')
    """
    if name not in SHORTCUTS:
        raise unknown("shortcut", name, SHORTCUTS)
    return SHORTCUTS[name](classes)


def _in_colours(kind: Callable[[tuple[Colour, ...]], Shortcut], classes: int) -> Choice:
    colours = named_colours(classes)
    return Choice(kind(tuple(colours.values())), tuple(colours))


def _watermark(classes: int) -> Choice:
    texts = tuple(f"(c) {_letters(number)}" for number in range(classes))
    return Choice(Watermark(texts), texts)


def _corruption(classes: int) -> Choice:
    require(classes <= 10, f"There are 10 corruptions, too few for {classes} classes; plant a border.")
    return Choice(Corruption(), tuple(CORRUPTIONS))


def _domino(classes: int) -> Choice:
    require(classes <= 10, f"There are 10 digits, too few for {classes} classes; plant a border.")
    return Choice(Domino(), tuple(str(digit) for digit in range(10)))


SHORTCUTS: dict[str, Callable[[int], Choice]] = {
    "square": partial(_in_colours, ColouredSquare),
    "color": partial(_in_colours, Tint),
    "corruption": _corruption,
    "watermark": _watermark,
    "border": partial(_in_colours, Border),
    "domino": _domino,
    "disc": partial(_in_colours, Disc),
}


def named_colours(count: int) -> dict[str, Colour]:
    """``count`` colours that can be told apart: the ten if they are enough, else hues at equal distances."""
    if count <= len(TEN_COLOURS):
        return dict(list(TEN_COLOURS.items())[:count])
    require(count <= 60, f"No more than 60 colours can be told apart, too few for {count} classes; plant a watermark.")
    hues = (colorsys.hsv_to_rgb(number / count, 0.9, 1 if number % 2 else 0.6) for number in range(count))
    colours = [(round(255 * r), round(255 * g), round(255 * b)) for r, g, b in hues]
    return {"#{:02x}{:02x}{:02x}".format(*colour): colour for colour in colours}


def _letters(number: int) -> str:
    """A, B, ..., Z, AA, AB, ...

    >>> _letters(0), _letters(27)
    ('A', 'AB')
    """
    first = _letters(number // 26 - 1) if number >= 26 else ""
    return first + chr(ord("A") + number % 26)


def _pixels(shape: torch.Size, share: float) -> int:
    return max(1, round(share * min(shape[-2:])))


def _bytes(colours: tuple[Colour, ...]) -> Tensor:
    return torch.tensor(colours, dtype=torch.uint8)


@functools.lru_cache(maxsize=64)
def _text(text: str, size: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Brightness (1, height, width) of a text in the lower right corner, and how far each pixel is covered by it."""
    font = ImageFont.load_default(size=max(size, 8))  # smaller ones cannot be read
    outline = max(1, size // 12)
    place = (width - 1 - outline, height - 1 - outline)
    layers = []
    for fill, stroke in ((255, 255), (255, 0)):
        layer = Image.new("L", (width, height), 0)
        ImageDraw.Draw(layer).text(
            place, text, fill=fill, font=font, anchor="rd", stroke_width=outline, stroke_fill=stroke
        )
        layers.append(torch.from_numpy(np.asarray(layer).copy()).float().unsqueeze(0))
    cover, ink = layers
    return ink, cover / 255


@functools.cache
def _digits() -> Images:
    return load_mini()[0]
