"""Cues as short texts: what an audit's findings.json and a run's configuration keep of them."""

from __future__ import annotations

from collections.abc import Sequence

from unspur.errors import UnspurError, unknown
from unspur.parts.cues.base import Cue
from unspur.parts.cues.cells import Cells
from unspur.parts.cues.colour import Colour
from unspur.parts.cues.compression import Compression
from unspur.parts.cues.detector import SpeaksLoudest
from unspur.parts.cues.noise import Noise
from unspur.parts.cues.region import Region
from unspur.parts.cues.sharpness import Sharpness
from unspur.parts.cues.standing_out import StandsOut
from unspur.parts.cues.tone import Tone

WHOLE: dict[str, Cue] = {  # cues of the whole image
    "colour": Colour(),
    "cast": Colour(brightness=True),
    "brightness": Tone(contrast=False),
    "contrast": Tone(brightness=False),
    "tone": Tone(channels=True),
    "noise": Noise(),
    "sharpness": Sharpness(),
    "compression": Compression(),
}
CELLS, MARK, DETECTED = "cells", "mark", "detected"
EXAMPLES = (f"{CELLS}:8x8:c0c0000000000000", f"{MARK}:blue:0.12")


def cue_text(cue: Cue) -> str | None:
    """The cue as text; None if no text describes it, such as the region of a detector that was not saved.

    Cells are written as the size of the grid and a number whose bits, row by row, are the cells.

    >>> cue_text(Colour()), cue_text(Cells(2, 4, ((0, 1), (1, 3)))), cue_text(Region(StandsOut((("blue", 0.12),))))
    ('colour', 'cells:2x4:41', 'mark:blue:0.12')
    """
    if isinstance(cue, Cells):
        bits = "".join(str(int((r, c) in cue.cells)) for r in range(cue.rows) for c in range(cue.columns))
        return f"{CELLS}:{cue.rows}x{cue.columns}:{int(bits, 2):0{-(-len(bits) // 4)}x}"
    if isinstance(cue, Region):
        return _region_text(cue)
    return next((text for text, known in WHOLE.items() if known == cue), None)


def _region_text(cue: Region) -> str | None:
    if isinstance(cue.find, StandsOut):
        return MARK + ":" + "+".join(f"{direction}:{level:.7g}" for direction, level in cue.find.levels)
    if isinstance(cue.find, SpeaksLoudest) and cue.find.file:
        return f"{DETECTED}:{cue.find.file}"
    return None


def cue_of(text: str) -> Cue:
    """The cue that ``cue_text`` wrote.

    >>> cue_of("cells:2x4:41")
    Cells(rows=2, columns=4, cells=((0, 1), (1, 3)))
    """
    if text in WHOLE:
        return WHOLE[text]
    kind, _, rest = text.partition(":")
    if kind == CELLS:
        return _cells(text, rest)
    if kind == MARK:
        return Region(_stands_out(text, rest))
    if kind == DETECTED:
        return Region(SpeaksLoudest.read(rest))
    raise unknown("cue", text, [*WHOLE, *EXAMPLES])


def _cells(text: str, rest: str) -> Cells:
    grid, _, digits = rest.partition(":")
    try:
        rows, columns = (int(side) for side in grid.split("x"))
        bits = f"{int(digits, 16):0{rows * columns}b}"
    except ValueError:
        rows, columns, bits = 0, 0, ""
    if not 0 < rows * columns == len(bits):
        raise UnspurError(
            f"Cells are written like cells:8x8:c0c0000000000000 (rows, columns, a bit for each cell) but got '{text}'."
        )
    cells = tuple(divmod(place, columns) for place, bit in enumerate(bits) if bit == "1")
    return Cells(rows, columns, cells)


def _stands_out(text: str, rest: str) -> StandsOut:
    pairs = [pair.partition(":") for pair in rest.split("+")]
    try:
        return StandsOut(tuple((direction, float(level)) for direction, _, level in pairs))
    except ValueError:
        raise UnspurError(
            f"A mark is written like mark:blue:0.12 or mark:blue:0.12+yellow:0.2 (direction, level) but got '{text}'."
        ) from None


def cues_of(texts: Sequence[str]) -> tuple[Cue, ...]:
    """Several cues, the first to be swapped first."""
    return tuple(cue_of(text) for text in texts)
