"""One pass over the images: each is decoded once, measured and forgotten, but for a sample of small copies."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from unspur.core.progress import counting
from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.data.images.decode import Unreadable, decode_whole
from unspur.data.images.listing import Listing
from unspur.data.images.splitting import codes, names_in_order
from unspur.data.images.workers import cores
from unspur.errors import UnspurError, require
from unspur.practice.audit.file_facts import FileFacts, file_facts
from unspur.practice.audit.image_statistics import (
    GRID,
    SCENE,
    TRACES,
    border_statistics,
    cell_statistics,
)

MOST_IMAGES = 20_000  # more are sampled, each class in its share: what is kept of an image takes 10 kB
MOST_PICTURES = 5_000  # small copies that are kept for what must look at pixels again
MOST_CLASSES = 100  # the largest ones; smaller ones are left out
FEWEST = 20  # images of a class
SIDE = 128  # pixels of the small copies; images that are smaller keep about their size
# Pixels of the middle piece, unresized, that shows traces of processing.
LADDER = (160, 128, 96, 64, 48, 32, 24, 16)
BATCH = 64
AHEAD = 2  # batches that are decoded while one is measured


class Item(NamedTuple):
    """An image as it comes in."""

    small: Tensor  # bytes (3, side, side)
    piece: Tensor  # bytes (3, p, p), p of LADDER
    facts: FileFacts | None


@dataclass(frozen=True)
class Source:
    """Images with labels, by number."""

    read: Callable[[int, int], Item]  # of a number and a side; raises Unreadable
    y: Tensor
    classes: tuple[str, ...]
    names: Sequence[str]  # what to call each image
    shape: Callable[[int], tuple[int, int]]  # height and width of an image, without decoding all of it
    total: int  # images that there were before a sample was drawn


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


def listed(listing: Listing) -> Source:
    """The images of a folder or table."""
    classes = names_in_order(listing.labels)

    def content(number: int) -> bytes:
        try:
            return (listing.root / listing.files[number].name).read_bytes()
        except OSError as error:
            raise Unreadable(f"cannot be read ({error.strerror})") from None

    def read(number: int, side: int) -> Item:
        data = content(number)
        pixels = decode_whole(data)
        return Item(
            _small(pixels, side), _piece(torch.from_numpy(pixels)), file_facts(listing.files[number].name, data)
        )

    def shape(number: int) -> tuple[int, int]:
        height, width = decode_whole(content(number)).shape[1:]
        return height, width

    names = [file.name for file in listing.files]
    return Source(read, codes(listing.labels, classes), classes, names, shape, len(listing))


def in_memory(split: Split, classes: tuple[str, ...]) -> Source:
    """The images of a split, grey ones as three equal channels; there are no files to look at."""
    require(
        len(split.sample_shape) == 3 and split.sample_shape[0] in (1, 3),
        f"Only images of 1 or 3 channels can be audited, but these samples have the shape {tuple(split.sample_shape)}.",
    )

    def read(number: int, side: int) -> Item:
        image = split.x[torch.tensor([number])][0]
        image = image.expand(3, -1, -1).contiguous()
        return Item(_small(image.numpy(), side), _piece(image), None)

    names = [str(number) for number in range(len(split))]
    height, width = split.sample_shape[1:]
    return Source(read, split.y, classes, names, lambda number: (height, width), len(split))


def sampled(source: Source, most: int, seed: int) -> Source:
    """At most ``most`` images of the classes that are large enough, each class in its share."""
    sizes = torch.bincount(source.y, minlength=len(source.classes))
    large = [label for label in sizes.argsort(descending=True).tolist() if sizes[label] >= FEWEST][:MOST_CLASSES]
    if len(large) < 2:
        count = len(source.classes)
        raise UnspurError(
            f"An audit compares classes of at least {FEWEST} images each, but of {count} class{'es' * (count > 1)} "
            f"(the largest has {int(sizes.max())}) {'only one is' if large else 'none is'} so large; "
            "add images, or join small classes."
        )
    large.sort()
    code = torch.full((len(source.classes),), -1)
    code[torch.tensor(large)] = torch.arange(len(large))
    y = code[source.y]
    usable = (y >= 0).nonzero().squeeze(1)
    share = min(1.0, most / len(usable))
    generator, chosen = stream(seed, "audit sample"), []
    for label in range(len(large)):
        members = (y == label).nonzero().squeeze(1)
        take = max(FEWEST, round(share * len(members)))
        chosen.append(members[torch.randperm(len(members), generator=generator)[:take]])
    index = torch.cat(chosen).sort().values
    numbers = index.tolist()
    return Source(
        lambda number, side: source.read(numbers[number], side),
        y[index],
        tuple(source.classes[label] for label in large),
        [source.names[number] for number in numbers],
        lambda number: source.shape(numbers[number]),
        source.total,
    )


def collect(source: Source, *, seed: int = 0, most: int = MOST_IMAGES, processes: int | None = None) -> Collected:
    """Decode and measure at most ``most`` images of ``source``."""
    source = sampled(source, most, seed)
    side = _side(source)
    n = len(source.y)
    keep = torch.randperm(n, generator=stream(seed, "audit pictures"))[:MOST_PICTURES].sort().values
    measures = _Measures(set(keep.tolist()))
    with ThreadPoolExecutor(processes or cores()) as threads, counting("looking at images", n) as advance:
        batches = [numbers.tolist() for numbers in torch.arange(n).split(BATCH)]
        ahead = deque(_begin(source, numbers, side, threads) for numbers in batches[:AHEAD])
        for place, numbers in enumerate(batches):
            if place + AHEAD < len(batches):
                ahead.append(_begin(source, batches[place + AHEAD], side, threads))
            measures.add(numbers, _items(ahead.popleft()))
            advance(len(numbers))
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
    """The side of small copies: a multiple of the leak map's cells near the images' own, up to SIDE."""
    sides = []
    for number in torch.linspace(0, len(source.y) - 1, looked_at).long().unique().tolist():
        try:
            sides.append(min(source.shape(number)))
        except Unreadable:
            continue
    middle = sorted(sides)[len(sides) // 2] if sides else SIDE
    return min(SIDE, max(2 * GRID, -(-middle // GRID) * GRID))


def _small(pixels: NDArray[np.uint8], side: int) -> Tensor:
    if pixels.shape[1:] == (side, side):
        return torch.from_numpy(np.ascontiguousarray(pixels))
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    small = np.asarray(image.resize((side, side), Image.Resampling.BILINEAR))
    return torch.from_numpy(np.ascontiguousarray(small.transpose(2, 0, 1)))


def _piece(image: Tensor) -> Tensor:
    """The middle of an image as it is; it begins at a multiple of eight pixels, where compression's blocks begin."""
    height, width = image.shape[1:]
    size = next((step for step in LADDER if step <= min(height, width)), None)
    if size is None:
        return functional.interpolate(image.unsqueeze(0).float(), size=LADDER[-1]).squeeze(0).to(torch.uint8)
    top, left = (height - size) // 2 // 8 * 8, (width - size) // 2 // 8 * 8
    return image[:, top : top + size, left : left + size].contiguous()
