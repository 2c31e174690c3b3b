"""What a search may set: ranges of numbers and lists of names."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from unspur.errors import UnspurError, require
from unspur.runs.config import pairs

RANGE = re.compile(r"^(?P<low>.+?)\.\.(?P<high>[^:]+)(?P<log>:log)?$")


class Axis(NamedTuple):
    """One setting: numbers from ``low`` to ``high``, or one of ``names``."""

    key: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False  # whole numbers alone
    names: tuple[str, ...] = ()

    def suggest(self, trial: Any) -> str:
        """A value as a setting has it; ``trial`` is Optuna's."""
        if self.names:
            return str(trial.suggest_categorical(self.key, self.names))
        if self.whole:
            return str(trial.suggest_int(self.key, int(self.low), int(self.high), log=self.log))
        return f"{trial.suggest_float(self.key, self.low, self.high, log=self.log):.6g}"


def axes_of(ranges: Sequence[str]) -> list[Axis]:
    """Axes from ``KEY=LOW..HIGH``, ``KEY=LOW..HIGH:log`` and ``KEY=NAME,NAME``.

    >>> axes_of(["erm.lr=0.001..0.1:log", "erm.epochs=2..8"])[1].whole
    True
    """
    axes = [_axis(key, text) for key, text in pairs(ranges)]
    require(bool(axes), "A search needs ranges, such as --grid erm.lr=0.001..0.1:log.")
    twice = next((axis.key for axis in axes if sum(other.key == axis.key for other in axes) > 1), None)
    require(twice is None, f"The search names {twice} twice; give one range for it.")
    return axes


def _axis(key: str, text: str) -> Axis:
    found = RANGE.match(text.strip())
    if not found:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        require(
            len(names) > 1,
            f"A search of {key} needs a range, such as {key}=LOW..HIGH or {key}=LOW..HIGH:log, or names, such as "
            f"{key}=A,B, but got '{text}'.",
        )
        return Axis(key, names=names)
    try:
        low, high = float(found["low"]), float(found["high"])
    except ValueError:
        raise UnspurError(f"The range of {key} has two numbers, such as {key}=0.001..0.1, but got '{text}'.") from None
    log = bool(found["log"])
    require(
        math.isfinite(low) and math.isfinite(high) and low < high,
        f"The range of {key} goes from a lower number to a higher one, but got '{text}'.",
    )
    require(not log or low > 0, f"The range of {key} is logarithmic, so it must begin above 0, but got '{text}'.")
    return Axis(key, low, high, log, "." not in found["low"] + found["high"] and "e" not in text.lower())
