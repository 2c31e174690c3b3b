"""The embedded digits' file: each pixel is coded by how often its value occurs with its surroundings.

A pixel is blank (0), grey (1-249) or full (250-255). First comes each digit's bounding box, then the kinds of all
pixels inside it, then which of 250-255 each full pixel has, then the upper and the lower four bits of each grey one. A
context is made of neighbours that are already known; a few frequency tables serve all contexts. Each step handles one
pixel position of all the digits.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass

import numpy as np

from unspur.data.mini.rans import Array, Coder, Decoder, Model
from unspur.errors import UnspurError

SIDE = 28
CLASSES, TRAIN, TEST = 10, 1000, 200  # digits are stored class by class, those for training first
DIGITS = CLASSES * (TRAIN + TEST)
FULL = 250
PAD = 2

# name: contexts, frequency tables, symbols
MODELS = {
    "frame": (5 * SIDE, 64, SIDE),
    "kind": (3**10, 64, 3),
    "full": (6 * 7**4, 64, 6),
    "high": (128 * 256, 128, 16),
    "low": (96 * 17**2, 128, 16),
}
SHAPES = 3**9  # patterns of kinds around a grey pixel, itself included, that fall into 128 classes


@dataclass(frozen=True, eq=False)
class Tables:
    """Frequencies that were counted once and are stored in the file."""

    models: dict[str, Model]
    shape_class: Array  # (SHAPES,) bytes below 128

    def pack(self) -> bytes:
        parts = [self.shape_class]
        for model in self.models.values():
            frequencies = model.frequencies.astype("<u2").view(np.uint8).reshape(*model.frequencies.shape, 2)
            parts += [model.table, frequencies[..., 0].ravel(), frequencies[..., 1].ravel()]
        return lzma.compress(np.concatenate(parts).tobytes(), format=lzma.FORMAT_RAW, filters=_FILTERS)

    @staticmethod
    def unpack(packed: bytes) -> Tables:
        raw = np.frombuffer(lzma.decompress(packed, format=lzma.FORMAT_RAW, filters=_FILTERS), np.uint8)
        shape_class, raw = raw[:SHAPES], raw[SHAPES:]
        models = {}
        for name, (contexts, tables, symbols) in MODELS.items():
            cells = tables * symbols
            table, low, high = (raw[: contexts + 2 * cells][part] for part in _thirds(contexts, cells))
            models[name] = Model(table, (low + 256 * high.astype(np.int64)).reshape(tables, symbols))
            raw = raw[contexts + 2 * cells :]
        return Tables(models, shape_class)


_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "pb": 0}]


def _thirds(contexts: int, cells: int) -> tuple[slice, slice, slice]:
    return slice(contexts), slice(contexts, contexts + cells), slice(contexts + cells, contexts + 2 * cells)


def unpack(packed: bytes) -> Array:
    """The digits, (DIGITS, 28, 28) bytes, from the file's content."""
    size = int.from_bytes(packed[:4], "little")
    try:
        tables = Tables.unpack(packed[4 : 4 + size])
        decoder = Decoder(tables.models, packed[4 + size :])
        nothing = np.zeros((SIDE, SIDE, DIGITS), np.uint8)
        pixels = walk(decoder, tables.shape_class, np.zeros((5, DIGITS), np.uint8), nothing)
    except (lzma.LZMAError, ValueError, IndexError) as error:
        raise UnspurError(f"The embedded digits are damaged ({error}); install unspur again.") from None
    decoder.finish()
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def walk(coder: Coder, shape_class: Array, frame: Array, pixels: Array) -> Array:
    """Pass ``frame_of(pixels)`` and all of ``pixels`` (28, 28, digits) through ``coder``; return its pixels."""
    *box, common = _code_frame(coder, frame)
    kinds = _code_kinds(coder, box, kinds_of(pixels))
    full = _code_full(coder, kinds, common, pixels)
    grey = _code_grey(coder, kinds, common, shape_class, pixels)
    return np.where(kinds[PAD:-PAD, PAD:-PAD] == 1, grey, full)


def kinds_of(pixels: Array) -> Array:
    """0 blank, 1 grey, 2 full."""
    return (pixels > 0).astype(np.uint8) + (pixels >= FULL)


def triples(kinds: Array) -> Array:
    """Each pixel's kind with its left and right neighbours', as one number; ``kinds`` is padded, the result is too."""
    around = np.zeros_like(kinds)
    around[:, 1:-1] = kinds[:, :-2] * 9 + kinds[:, 1:-1] * 3 + kinds[:, 2:]
    return around


def padded(values: Array) -> Array:
    return np.pad(values, ((PAD, PAD), (PAD, PAD), (0, 0)))


def frame_of(pixels: Array) -> Array:
    """First and last row, first and last column that are not blank, and the commonest full value less 250."""
    rows, columns = np.any(pixels, axis=1), np.any(pixels, axis=0)
    last = (SIDE - 1 - lines[::-1].argmax(0) for lines in (rows, columns))
    common = np.stack([(pixels == value).sum((0, 1)) for value in range(FULL, 256)]).argmax(0)
    return np.stack([rows.argmax(0), next(last), columns.argmax(0), next(last), common]).astype(np.uint8)


def _code_frame(coder: Coder, frame: Array) -> list[Array]:
    """First row, first column and commonest value from the class; last row and column from the first."""
    digit = np.arange(CLASSES).repeat(frame.shape[1] // CLASSES)
    coded = {field: coder.code("frame", field * SIDE + digit, frame[field]) for field in (0, 2, 4)}
    for first in (0, 2):
        coded[first + 1] = coder.code("frame", (first + 1) * SIDE + coded[first].astype(np.int64), frame[first + 1])
    return [coded[field] for field in range(5)]


def _code_kinds(coder: Coder, box: list[Array], given: Array) -> Array:
    """Kinds within the box, from those of ten neighbours: two to the left, five above, three above those."""
    top, bottom, left, right = box
    kinds = padded(np.zeros_like(given))
    column = np.arange(SIDE)[:, None]
    in_columns = (left <= column) & (column <= right)
    for row in range(SIDE):
        inside = in_columns & ((top <= row) & (row <= bottom))
        near, far = kinds[row + PAD - 1].astype(np.int64), kinds[row + PAD - 2].astype(np.int64)
        above = near[:-4]
        for ahead in (near[1:-3], near[2:-2], near[3:-1], near[4:], far[1:-3], far[2:-2], far[3:-1]):
            above = above * 3 + ahead
        line = kinds[row + PAD]
        for place in range(SIDE):
            on = inside[place].nonzero()[0]
            context = above[place][on] * 9 + (line[place + 1] * 3 + line[place])[on]
            line[place + PAD][on] = coder.code("kind", context, given[row, place][on])
    return kinds


def _code_full(coder: Coder, kinds: Array, common: Array, given: Array) -> Array:
    """Values of full pixels, from the commonest one and those of four neighbours."""
    level = np.zeros_like(kinds)  # 1 to 6 for 250 to 255
    common = common.astype(np.int64)
    for row in range(PAD, SIDE + PAD):
        for place in range(PAD, SIDE + PAD):
            on = (kinds[row, place] == 2).nonzero()[0]
            context = common[on]
            for near in (level[row, place - 1], *level[row - 1, place - 1 : place + 2]):
                context = context * 7 + near[on]
            level[row, place][on] = 1 + coder.code("full", context, given[row - PAD, place - PAD][on] - np.uint8(FULL))
    full = level[PAD:-PAD, PAD:-PAD]
    return np.where(full > 0, full + np.uint8(FULL - 1), full)


def _code_grey(coder: Coder, kinds: Array, common: Array, shape_class: Array, given: Array) -> Array:
    """Values of grey pixels less 1: the upper half from the shape around, the left and the upper neighbour; the lower
    half from the upper one, the commonest full value, and both neighbours' lower halves where the upper ones agree."""
    value = np.where(kinds == 2, np.uint8(255), kinds)  # blank 0, full 255; grey ones follow
    around = triples(kinds)
    classes, common = shape_class.astype(np.int64), common.astype(np.int64)
    for row in range(PAD, SIDE + PAD):
        shape = around[row - 1].astype(np.int64) * 729 + around[row].astype(np.int64) * 27 + around[row + 1]
        for place in range(PAD, SIDE + PAD):
            on = (kinds[row, place] == 1).nonzero()[0]
            left, above = value[row, place - 1][on], value[row - 1, place][on]
            grey = given[row - PAD, place - PAD][on] - np.uint8(1)
            context = classes[shape[place][on]] * 256 + ((left & 240) | (above >> 4))
            high = coder.code("high", context, grey >> 4).astype(np.int64)
            context = high * 6 + common[on]
            for near in (left - np.uint8(1), above - np.uint8(1)):  # a blank one becomes 255, a full one 254
                context = context * 17 + np.where(near >> 4 == high, 1 + (near & 15), 0)
            value[row, place][on] = 1 + (high << 4 | coder.code("low", context, grey & 15))
    return value[PAD:-PAD, PAD:-PAD]
