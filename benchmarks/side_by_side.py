"""Time several functions in turns, so that a busy machine is equally busy for each."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def compare(functions: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """The median seconds of each function over ``repeats`` rounds; a first round warms up and does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats + 1):
        for name, function in functions.items():
            begin = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(times[1:]) for name, times in seconds.items()}


def verdict(what: str, value: float, *, at_most: float | None = None, at_least: float | None = None) -> bool:
    """Print ``value`` beside its bound, and say whether it holds."""
    if at_most is not None:
        holds, bound = value <= at_most, f"at most {at_most:g}"
    elif at_least is not None:
        holds, bound = value >= at_least, f"at least {at_least:g}"
    else:
        raise ValueError("A verdict needs a bound.")
    print(f"{what}: {value:.2f} ({bound}: {'holds' if holds else 'FAILS'})")
    return holds
