"""Images with labels, by number, wherever they lie: files, or samples in memory; and a sample of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.data.images.decode import Unreadable, decode_whole
from unspur.data.images.listing import Listing
from unspur.data.images.splitting import codes, names_in_order
from unspur.errors import UnspurError, require
from unspur.practice.audit.file_facts import FileFacts, file_facts

MOST_IMAGES = 20_000  # more are sampled, each class by its share: what is kept of an image takes 10 kB
MOST_CLASSES = 100  # the largest ones; smaller ones are left out
FEWEST = 20  # images of a class
# Pixels of the middle piece that shows traces of processing; it is not resized.
LADDER = (160, 128, 96, 64, 48, 32, 24, 16)


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
    content: Callable[[int], bytes]  # of an image, by which an audit of it is found again; raises Unreadable
    root: Path | None = None  # names are of files below it; None: the images are in memory
    training: Tensor | None = None  # which images a run was trained on; None: all count alike
    side: int | None = None  # pixels of a model that is to look at the small copies; None: no model asks for any


def listed(listing: Listing) -> Source:
    """The images of a folder or table."""
    classes = names_in_order(listing.labels)
    names = [file.name for file in listing.files]

    def content(number: int) -> bytes:
        return _content(listing.root, names[number])

    def shape(number: int) -> tuple[int, int]:
        height, width = decode_whole(content(number)).shape[1:]
        return height, width

    return Source(
        lambda number, side: read_file(listing.root, names[number], side),
        codes(listing.labels, classes),
        classes,
        names,
        shape,
        len(listing),
        content,
        listing.root,
    )


def read_file(root: Path, name: str, side: int) -> Item:
    """The image in the file ``name`` below ``root``."""
    data = _content(root, name)
    pixels = decode_whole(data)
    return Item(_small(pixels, side), _piece(torch.from_numpy(pixels)), file_facts(name, data))


def _content(root: Path, name: str) -> bytes:
    try:
        return (root / name).read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None


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
    return Source(
        read,
        split.y,
        classes,
        names,
        lambda number: (height, width),
        len(split),
        lambda number: bytes(split.x[torch.tensor([number])].numpy().tobytes()),
    )


def sampled(source: Source, most: int, seed: int) -> Source:
    """At most ``most`` images of the classes that are large enough, each class by its share."""
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
    return replace(
        source,
        read=lambda number, side: source.read(numbers[number], side),
        y=y[index],
        classes=tuple(source.classes[label] for label in large),
        names=[source.names[number] for number in numbers],
        shape=lambda number: source.shape(numbers[number]),
        content=lambda number: source.content(numbers[number]),
        training=None if source.training is None else source.training[index],
    )


def _small(pixels: NDArray[np.uint8], side: int) -> Tensor:
    if pixels.shape[1:] == (side, side):
        return torch.from_numpy(np.ascontiguousarray(pixels))
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    small = np.asarray(image.resize((side, side), Image.Resampling.BILINEAR))
    return torch.from_numpy(np.ascontiguousarray(small.transpose(2, 0, 1)))


def _piece(image: Tensor) -> Tensor:
    """The middle of an image, not resized; it starts at a multiple of eight pixels, like the blocks of compression."""
    height, width = image.shape[1:]
    size = next((step for step in LADDER if step <= min(height, width)), None)
    if size is None:
        return functional.interpolate(image.unsqueeze(0).float(), size=LADDER[-1]).squeeze(0).to(torch.uint8)
    top, left = (height - size) // 2 // 8 * 8, (width - size) // 2 // 8 * 8
    return image[:, top : top + size, left : left + size].contiguous()
