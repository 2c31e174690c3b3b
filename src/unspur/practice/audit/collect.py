"""One pass over the images: each is decoded once and measured; only a sample of small copies is kept."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unspur.core.seeds import stream
from unspur.core.threads import one_thread_each
from unspur.data.images.decode import Unreadable
from unspur.data.images.workers import cores
from unspur.errors import UnspurError, require
from unspur.parts.cues.cells import GRID
from unspur.practice.audit.file_facts import FileFacts
from unspur.practice.audit.image_source import MOST_IMAGES, Source, sampled
from unspur.practice.audit.image_statistics import SCENE
from unspur.practice.audit.measure import BATCH, PICTURES, Part, measured
from unspur.practice.audit.on_ray import parts_on_ray
from unspur.practice.audit.processing_traces import TRACES
from unspur.practice.engine import Engine

MOST_PICTURES = 5_000  # small copies that are kept for tests that need pixels again; fewer if larger than SIDE
SIDE = 128  # pixels of the small copies; smaller images keep about their size
LARGEST_SIDE = 256  # of the copies for a model that takes more pixels
AHEAD = 2  # batches per core that wait or are measured while others are joined


@dataclass(frozen=True)
class Collected:
    """What is known about the images after the pass."""

    y: Tensor
    classes: tuple[str, ...]
    names: Sequence[str]
    total: int
    facts: Sequence[FileFacts] | None  # None: the images are no files
    cells: Tensor  # (n, GRID, GRID, 18)
    borders: Tensor  # (n, 4, 18)
    scene: dict[str, Tensor]  # family: (n, numbers)
    traces: dict[str, Tensor]
    flatness: float  # the share of neighbours that are equal, of the median image: high in drawings
    pictures: Tensor  # bytes (m, 3, side, side)
    pictured: Tensor  # their numbers
    unread: dict[str, str]  # files that could not be decoded, and why
    training: Tensor | None = None  # which images a run was trained on; None: all count alike

    def only(self, index: Tensor) -> Collected:
        """The same for some of the images; their numbers must be sorted."""
        shown = torch.isin(self.pictured, index)
        return replace(
            self,
            y=self.y[index],
            names=[self.names[number] for number in index.tolist()],
            facts=None if self.facts is None else [self.facts[number] for number in index.tolist()],
            cells=self.cells[index],
            borders=self.borders[index],
            scene={name: values[index] for name, values in self.scene.items()},
            traces={name: values[index] for name, values in self.traces.items()},
            pictures=self.pictures[shown],
            pictured=torch.searchsorted(index, self.pictured[shown]),
            training=None,
        )


def collect(
    source: Source,
    *,
    seed: int = 0,
    most: int = MOST_IMAGES,
    engine: Engine = Engine(),  # noqa: B008 (frozen)
    progress: Callable[[float], None] = lambda done: None,
) -> Collected:
    """Decode and measure at most ``most`` images of ``source``, in batches on all cores."""
    source = sampled(source, most, seed)
    side = _side(source)
    n = len(source.y)
    pictures = min(MOST_PICTURES, MOST_PICTURES * SIDE**2 // side**2)
    keep = set(torch.randperm(n, generator=stream(seed, "audit pictures"))[:pictures].tolist())
    batches = [numbers.tolist() for numbers in torch.arange(n).split(BATCH)]
    known = _Known(n, len(keep))
    if engine.name == "ray":
        parts = parts_on_ray(source, batches, side, keep, engine.workers)
    else:
        parts = _in_threads(source, batches, side, keep)
    for done, part in enumerate(parts, 1):
        known.add(part)
        progress(done / len(batches))
    return known.collected(source)


def _in_threads(source: Source, batches: Sequence[list[int]], side: int, keep: Container[int]) -> Iterator[Part]:
    """The parts in order; each core of this machine works a few batches ahead."""
    with one_thread_each(), ThreadPoolExecutor(cores()) as threads:
        waiting: deque[Future[Part]] = deque()
        for numbers in batches:
            waiting.append(threads.submit(measured, lambda number: source.read(number, side), numbers, keep))
            if len(waiting) > AHEAD * cores():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class _Known:
    """What is known about all images so far, in tables that are allocated at their full length.

    Parts are not kept: scattered among everything that is allocated and freed while images are measured, they would
    hold on to several times the memory that they take.
    """

    def __init__(self, images: int, pictures: int) -> None:
        self._images, self._pictures = images, pictures
        self._rows: list[int] = []
        self._facts: list[FileFacts] = []
        self._pictured: list[int] = []
        self._problems: dict[int, str] = {}
        self._tables: dict[str, Tensor] = {}
        self._filled: Counter[str] = Counter()

    def add(self, part: Part) -> None:
        places = {number: len(self._rows) + place for place, number in enumerate(part.rows)}
        self._rows += part.rows
        self._facts += [fact for fact in part.facts if fact is not None]
        self._pictured += [places[number] for number in part.pictured]
        self._problems |= part.problems
        for name, rows in part.measures.items():
            length = self._pictures if name == PICTURES else self._images
            if name not in self._tables:
                self._tables[name] = torch.empty(length, *rows.shape[1:], dtype=rows.dtype)
            begin = self._filled[name]
            self._tables[name][begin : begin + len(rows)] = rows
            self._filled[name] += len(rows)

    def collected(self, source: Source) -> Collected:
        if not self._rows:
            number, problem = next(iter(self._problems.items()))
            raise UnspurError(
                f"None of the {len(self._problems):,} images can be decoded (such as {source.names[number]}, which "
                f"{problem}); fix or replace them."
            )
        tables = {name: table[: self._filled[name]] for name, table in self._tables.items()}
        require(
            bool((tables["cells"] != tables["cells"][:1]).any()),
            f"All {len(self._rows):,} images are the same; an audit needs images that differ.",
        )
        return Collected(
            y=source.y[torch.tensor(self._rows)],
            classes=source.classes,
            names=[source.names[number] for number in self._rows],
            total=source.total,
            facts=self._facts or None,
            cells=tables["cells"],
            borders=tables["borders"],
            scene={name: tables[name] for name in SCENE},
            traces={name: tables[name] for name in TRACES},
            flatness=float(tables["parity"][:, -1].median()),
            pictures=tables[PICTURES],
            pictured=torch.tensor(self._pictured),
            unread={source.names[number]: problem for number, problem in self._problems.items()},
            training=None if source.training is None else source.training[torch.tensor(self._rows)],
        )


def _side(source: Source, looked_at: int = 9) -> int:
    """The side of small copies: a multiple of the leak map's cells, near the side that the model or the images have."""
    if source.side is not None:
        return min(LARGEST_SIDE, max(2 * GRID, -(-source.side // GRID) * GRID))
    sides = []
    for number in torch.linspace(0, len(source.y) - 1, looked_at).long().unique().tolist():
        try:
            sides.append(min(source.shape(number)))
        except Unreadable:
            continue
    middle = sorted(sides)[len(sides) // 2] if sides else SIDE
    return min(SIDE, max(2 * GRID, -(-middle // GRID) * GRID))
