"""The tables of docs/scale.md: the cost model beside what was measured, and drawn out to what nobody measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypedDict

IMAGENET, BILLION = 1_281_167, 1_000_000_000
SIZES = ((IMAGENET, 1), (IMAGENET, 8), (IMAGENET, 64), (BILLION, 64), (BILLION, 1024))  # images, cores
DAY, HOUR, MINUTE = 86_400, 3_600, 60


class Point(TypedDict):
    """A measured point."""

    what: str  # one of RATES
    processes: int
    images_per_second: float


class Scale(TypedDict):
    """results/scale.json; times are seconds of one core for one image."""

    command: str
    commit: str | None
    images: int
    cores: int
    load: float  # when it began: other work takes cores that the model counts on
    decode: float
    model: float
    hand_out: float  # of the process that lists images, hands them to workers and takes rows
    write: float  # of that process for a row in a file
    points: list[Point]


class Costs(NamedTuple):
    """Seconds of a core for an image."""

    decode: float
    model: float
    rows: float


def rate(what: str, processes: int, cores: int, costs: Costs) -> float:
    """Images a second that the cost model expects of some processes on ``cores`` cores.

    Decoding alone keeps a core busy for each process. In `predict` one process runs the model while others decode. A
    worker of Ray is a pair of these. None can be faster than all cores that do the work of both.

    >>> two = Costs(decode=0.01, model=0.02, rows=0.0)
    >>> [round(rate("decoding", n, 2, two)) for n in (1, 2, 3)]
    [100, 200, 200]
    >>> [round(rate("predict", n, 2, two)) for n in (1, 2)], [round(rate("Ray", n, 2, two)) for n in (1, 2)]
    ([50, 50], [50, 67])
    """
    decode, model, _ = costs
    if what == "decoding":
        return min(processes, cores) / decode
    pairs, decoders = (1, processes) if what == "predict" else (processes, processes)
    return min(decoders / decode, pairs / model, cores / (decode + model))


def costs_of(found: Scale) -> Costs:
    return Costs(found["decode"], found["model"], found["hand_out"] + found["write"])


def point_rows(found: Scale) -> Iterator[list[object]]:
    """What was measured, beside what the model expects."""
    costs = costs_of(found)
    for point in found["points"]:
        expected, measured = rate(point["what"], point["processes"], found["cores"], costs), point["images_per_second"]
        yield [
            point["what"],
            point["processes"],
            f"{measured:,.0f}",
            f"{expected:,.0f}",
            f"{measured / expected:.2f}",
        ]


def far_rows(found: Scale) -> Iterator[list[object]]:
    """Sizes that nobody measured, computed: the part of each, and which of them takes longest."""
    costs = costs_of(found)
    for images, cores in SIZES:
        spread, alone = images * (costs.decode + costs.model) / cores, images * costs.rows
        slowest = "the cores" if spread >= alone else "the one process that lists and writes"
        parts = (images * costs.decode / cores, images * costs.model / cores, alone)
        yield [f"{images:,}", f"{cores:,}", *map(duration, parts), duration(max(spread, alone)), slowest]


def enough_cores(found: Scale) -> int:
    """Cores beyond which more of them change nothing, because one process lists images and writes rows."""
    costs = costs_of(found)
    return int((costs.decode + costs.model) / costs.rows)


def duration(seconds: float) -> str:
    """In the largest unit that there is more than two of.

    >>> duration(90), duration(7_300), duration(200_000)
    ('90 s', '2.0 h', '2.3 days')
    """
    units: Mapping[str, int] = {"days": DAY, "h": HOUR, "min": MINUTE}
    for name, length in units.items():
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {name}"
    return f"{seconds:,.0f} s"
