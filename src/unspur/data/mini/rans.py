"""Symbols to bits and back with fixed frequency tables: range coding (rANS) over many lanes at once.

Each call of ``code`` handles any number of symbols with a few NumPy operations, which is what makes decoding quick.
The encoder goes backwards, since a coder of this kind is last in, first out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unspur.errors import require

Array = NDArray[Any]

BITS = 12  # of a frequency
WHOLE = 1 << BITS  # what the frequencies of a table add up to
LANES = 2048
LOW = 1 << 16  # a lane's state lies in [2^16, 2^32), and 16 bits at a time go to or come from the packed words


@dataclass(frozen=True, eq=False)
class Model:
    """Which frequency table each context uses."""

    table: Array  # (contexts,) bytes
    frequencies: Array  # (tables, symbols), each row adding up to WHOLE


class Coder(Protocol):
    def code(self, model: str, context: Array, symbol: Array) -> Array:
        """Pass each of ``symbol`` on under its ``context`` and return it; a decoder ignores what it is given."""
        ...


class Encoder:
    """Collects symbols; ``finish`` turns them into bytes."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self.models = models
        self.steps: list[tuple[Array, Array]] = []

    def code(self, model: str, context: Array, symbol: Array) -> Array:
        frequencies = self.models[model].frequencies.astype(np.int64)
        before = frequencies.cumsum(1) - frequencies
        row = self.models[model].table[context]
        self.steps.append((frequencies[row, symbol], before[row, symbol]))
        return symbol

    def finish(self) -> bytes:
        state = np.full(LANES, LOW, np.int64)
        words = []
        for frequencies, befores in reversed(self.steps):
            for start in reversed(range(0, len(frequencies), LANES)):
                frequency, before = frequencies[start : start + LANES], befores[start : start + LANES]
                lane = state[: len(frequency)]
                full = lane >= frequency << (32 - BITS)
                words.append((lane[full] & 0xFFFF)[::-1])
                lane = np.where(full, lane >> 16, lane)
                state[: len(frequency)] = (lane // frequency << BITS) + lane % frequency + before
        return state.astype("<u4").tobytes() + np.concatenate(words)[::-1].astype("<u2").tobytes()


class Decoder:
    """Gives back, call by call, what an ``Encoder`` with the same models was given."""

    def __init__(self, models: Mapping[str, Model], packed: bytes) -> None:
        self.tables = {name: model.table.astype(np.uint32) << BITS for name, model in models.items()}
        self.slots = {name: _slots(model.frequencies) for name, model in models.items()}
        self.state = np.frombuffer(packed, "<u4", LANES).copy()
        self.words = np.frombuffer(packed, "<u2", offset=4 * LANES).astype(np.uint32)
        self.at = 0

    def code(self, model: str, context: Array, symbol: Array) -> Array:
        table, slots = self.tables[model][context], self.slots[model]
        decoded = np.empty(len(context), np.uint8)
        for start in range(0, len(context), LANES):
            row = table[start : start + LANES]
            lane = self.state[: len(row)]
            slot = slots[row | (lane & (WHOLE - 1))]
            lane = (((slot >> BITS) & (WHOLE - 1)) + 1) * (lane >> BITS) + (slot & (WHOLE - 1))
            empty = (lane < LOW).nonzero()[0]
            lane[empty] = lane[empty] << 16 | self.words[self.at : self.at + len(empty)]
            self.at += len(empty)
            self.state[: len(row)] = lane
            decoded[start : start + LANES] = slot >> (2 * BITS)
        return decoded

    def finish(self) -> None:
        """Every lane must be back where the encoder began, and every word read."""
        whole = self.at == len(self.words) and bool((self.state == LOW).all())
        require(whole, "The embedded digits are damaged; install unspur again.")


def _slots(frequencies: Array) -> Array:
    """For each table and each number below WHOLE: its symbol, that symbol's frequency - 1, its place within it."""
    entries = []
    for row in frequencies.astype(np.uint32):
        symbol = np.arange(len(row), dtype=np.uint32).repeat(row)
        place = np.arange(WHOLE, dtype=np.uint32) - (row.cumsum(dtype=np.uint32) - row)[symbol]
        entries.append(symbol << (2 * BITS) | (row[symbol] - 1) << BITS | place)
    return np.concatenate(entries)
