"""Draw any text in a picture, with the fonts that this machine has: Pillow's own covers hardly more than English."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from PIL import ImageFont

FONTS = (  # by the names under which systems keep them; those that draw Chinese and Japanese come last
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "LiberationSans-Regular.ttf",
    "Arial.ttf",
    "NotoSansCJK-Regular.ttc",
    "Arial Unicode.ttf",
    "msgothic.ttc",
)
NO_CHARACTER = "\U0010ffff"  # a font draws this like every character that it lacks


class Lettering(NamedTuple):
    """A text and a font that draws all of it."""

    text: str
    font: ImageFont.FreeTypeFont

    @property
    def width(self) -> float:
        return self.font.getlength(self.text)


def lettering(text: str, size: int) -> Lettering:
    """``text`` in the font that has the most of its letters; missing letters are replaced: é by e, 日 by U+65E5."""
    fonts = _fonts(size)
    lacking = [{letter for letter in set(text) if not draws(font, letter)} for font in fonts]
    best = min(range(len(fonts)), key=lambda number: len(lacking[number]))
    spelt = "".join(_spelt(letter) if letter in lacking[best] else letter for letter in text)
    return Lettering(spelt, fonts[best])


def draws(font: ImageFont.FreeTypeFont, letter: str) -> bool:
    """Whether ``font`` has this letter."""
    return letter.isspace() or bytes(font.getmask(letter)) != bytes(font.getmask(NO_CHARACTER))


def wrapped(text: str, size: int, width: float) -> list[Lettering]:
    """``text`` in lines no wider than ``width`` pixels, broken between words; a longer word gets its own line."""
    whole = lettering(text, size)
    lines: list[Lettering] = []
    for word in whole.text.split():
        longer = whole._replace(text=f"{lines[-1].text} {word}" if lines else word)
        if lines and longer.width <= width:
            lines[-1] = longer
        else:
            lines.append(whole._replace(text=word))
    return lines


@cache
def _fonts(size: int) -> list[ImageFont.FreeTypeFont]:
    own = ImageFont.load_default(size=size)
    return [*([own] if isinstance(own, ImageFont.FreeTypeFont) else []), *_system_fonts(size)]


def _system_fonts(size: int) -> Iterator[ImageFont.FreeTypeFont]:
    for name in (*FONTS, *_packaged()):
        try:
            yield ImageFont.truetype(name, size)
        except OSError:
            continue


def _packaged() -> list[str]:
    """A font that comes with matplotlib if that is installed, found without importing it."""
    package = find_spec("matplotlib")
    return (
        [str(Path(package.origin).parent / "mpl-data/fonts/ttf/DejaVuSans.ttf")] if package and package.origin else []
    )


def _spelt(letter: str) -> str:
    plain = "".join(part for part in unicodedata.normalize("NFKD", letter) if part.isascii())
    return plain or f"U+{ord(letter):04X}"
