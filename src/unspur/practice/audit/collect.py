"""One pass over the images: each is decoded once, measured and forgotten, but for a sample of small copies."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from unspur.core.seeds import stream
from unspur.data.images.decode import Unreadable
from unspur.data.images.workers import cores
from unspur.errors import UnspurError, require
from unspur.practice.audit.file_facts import FileFacts
from unspur.practice.audit.image_source import MOST_IMAGES, Item, Source, sampled
from unspur.practice.audit.image_statistics import (
    GRID,
    SCENE,
    border_statistics,
    cell_statistics,
)
from unspur.practice.audit.processing_traces import TRACES

MOST_PICTURES = 5_000  # small copies that are kept for what must look at pixels again; fewer if they are above SIDE
SIDE = 128  # pixels of the small copies; images that are smaller keep about their size
LARGEST_SIDE = 256  # of the copies for a model that is used to more pixels
BATCH = 64
AHEAD = 2  # batches that are decoded while one is measured


@dataclass(frozen=True)
class Collected:
    """What is known of the images after the pass."""

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


def collect(
    source: Source, *, seed: int = 0, most: int = MOST_IMAGES, progress: Callable[[float], None] = lambda done: None
) -> Collected:
    """Decode and measure at most ``most`` images of ``source``."""
    source = sampled(source, most, seed)
    side = _side(source)
    n = len(source.y)
    pictures = min(MOST_PICTURES, MOST_PICTURES * SIDE**2 // side**2)
    keep = torch.randperm(n, generator=stream(seed, "audit pictures"))[:pictures].sort().values
    measures = _Measures(set(keep.tolist()))
    with ThreadPoolExecutor(cores()) as threads:
        batches = [numbers.tolist() for numbers in torch.arange(n).split(BATCH)]
        ahead = deque(_begin(source, numbers, side, threads) for numbers in batches[:AHEAD])
        for place, numbers in enumerate(batches):
            if place + AHEAD < len(batches):
                ahead.append(_begin(source, batches[place + AHEAD], side, threads))
            measures.add(numbers, _items(ahead.popleft()))
            progress((numbers[-1] + 1) / n)
    return measures.finish(source)


def _begin(source: Source, numbers: Sequence[int], side: int, threads: ThreadPoolExecutor) -> list[Future[Item]]:
    return [threads.submit(source.read, number, side) for number in numbers]


def _items(waiting: Sequence[Future[Item]]) -> Iterator[Item | str]:
    for future in waiting:
        try:
            yield future.result()
        except Unreadable as problem:
            yield str(problem)


class _Measures:
    """Collects batch by batch; what cannot be read is left out."""

    def __init__(self, keep: set[int]) -> None:
        self._keep = keep
        self._rows: list[int] = []
        self._facts: list[FileFacts | None] = []
        self._parts: defaultdict[str, list[Tensor]] = defaultdict(list)
        self._pictures: list[Tensor] = []
        self._pictured: list[int] = []
        self._problems: dict[int, str] = {}

    def add(self, numbers: Sequence[int], items: Iterator[Item | str]) -> None:
        good = []
        for number, item in zip(numbers, items, strict=True):
            if isinstance(item, str):
                self._problems[number] = item
                continue
            good.append(item)
            if number in self._keep:
                self._pictures.append(item.small)
                self._pictured.append(len(self._rows))
            self._rows.append(number)
            self._facts.append(item.facts)
        if good:
            small = torch.stack([item.small for item in good]).float() / 255
            self._parts["cells"].append(cell_statistics(small))
            self._parts["borders"].append(border_statistics(small))
            for name, measure in SCENE.items():
                self._parts[name].append(measure(small))
            self._add_traces([item.piece for item in good])

    def _add_traces(self, pieces: Sequence[Tensor]) -> None:
        """Measure pieces of one size together, and put the results back in order."""
        by_size = defaultdict(list)
        for number, piece in enumerate(pieces):
            by_size[piece.shape[-1]].append(number)
        order = [number for members in by_size.values() for number in members]
        back = torch.tensor(order).argsort()
        for name, measure in TRACES.items():
            parts = [measure(torch.stack([pieces[i] for i in members]).float() / 255) for members in by_size.values()]
            self._parts[name].append(torch.cat(parts)[back])

    def finish(self, source: Source) -> Collected:
        if not self._rows:
            number, problem = next(iter(self._problems.items()))
            raise UnspurError(
                f"None of the {len(self._problems):,} images can be decoded (such as {source.names[number]}, which "
                f"{problem}); fix or replace them."
            )
        joined = {name: torch.cat(parts) for name, parts in self._parts.items()}
        require(
            bool((joined["cells"] != joined["cells"][:1]).any()),
            f"All {len(self._rows):,} images are the same; an audit needs images that differ.",
        )
        rows = torch.tensor(self._rows)
        facts = [fact for fact in self._facts if fact is not None]
        return Collected(
            y=source.y[rows],
            classes=source.classes,
            names=[source.names[number] for number in self._rows],
            total=source.total,
            facts=facts or None,
            cells=joined["cells"],
            borders=joined["borders"],
            scene={name: joined[name] for name in SCENE},
            traces={name: joined[name] for name in TRACES},
            flatness=float(joined["parity"][:, -1].median()),
            pictures=torch.stack(self._pictures),
            pictured=torch.tensor(self._pictured),
            unread={source.names[number]: problem for number, problem in self._problems.items()},
        )


def _side(source: Source, looked_at: int = 9) -> int:
    """The side of small copies: a multiple of the leak map's cells near the model's or the images' own."""
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
