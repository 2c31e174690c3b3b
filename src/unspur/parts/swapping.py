"""Copies of images whose cue comes from an image of another class: made when they are asked for, the same each time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from unspur.core.seeds import stream
from unspur.data.base import Source, Split, Unread
from unspur.data.masks import Mask
from unspur.errors import require
from unspur.parts.cues.base import Cue
from unspur.train.orders import Drawn, Passes, Place, epoch_batches
from unspur.train.recipe import Recipe


class Exchange(Protocol):
    """What turns images and donors (floats in [0, 1]) into copies; ``index`` are the images' places in their split."""

    def __call__(self, images: Tensor, donors: Tensor, index: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class CueExchange:
    """Every cue of the donor, one after the other."""

    cues: tuple[Cue, ...]

    def __call__(self, images: Tensor, donors: Tensor, index: Tensor) -> Tensor:
        grey = images.shape[1] == 1
        if grey:  # cues are of colour images
            images, donors = images.expand(-1, 3, -1, -1), donors.expand(-1, 3, -1, -1)
        for cue in self.cues:
            images = cue.swap(images, donors)
        return images[:, :1] if grey else images


@dataclass(frozen=True, eq=False)
class MaskExchange:
    """What a mask hides of an image, from the same place of the donor."""

    mask: Mask

    def __call__(self, images: Tensor, donors: Tensor, index: Tensor) -> Tensor:
        keep = self.mask.keep(index).unsqueeze(1)
        return images * keep + donors * (1 - keep)


class Pairing(NamedTuple):
    """Which image each sample is made of, and whose cue it gets; an image that is its own donor stays as it is."""

    image: Tensor
    donor: Tensor

    def at(self, index: Tensor) -> Pairing:
        return Pairing(self.image[index], self.donor[index])


class SwappedImages:
    """Images by index whose cues are swapped when they are read: a source for a Split."""

    def __init__(self, images: Source, pairing: Pairing, exchange: Exchange) -> None:
        self._images, self._pairing, self._exchange = images, pairing, exchange

    @property
    def shape(self) -> torch.Size:
        return torch.Size([len(self._pairing.image), *self._images.shape[1:]])

    @property
    def dtype(self) -> torch.dtype:
        return self._images.dtype

    def __getitem__(self, index: Tensor, /) -> Tensor:
        return next(self.reading([index]))

    def subset(self, index: Tensor, /) -> SwappedImages:
        return SwappedImages(self._images, self._pairing.at(index), self._exchange)

    def reading(self, order: Sequence[Tensor], /) -> Iterator[Tensor]:
        """Each index in turn: its images, and behind them the donors of those that get another's cue."""
        pairs = [self._pairing.at(index) for index in order]
        changed = [pair.image != pair.donor for pair in pairs]
        wanted = [torch.cat([pair.image, pair.donor[own]]) for pair, own in zip(pairs, changed, strict=True)]
        source = self._images
        read = source.reading(wanted) if isinstance(source, Unread) else (source[index] for index in wanted)
        for pair, own, both in zip(pairs, changed, read, strict=True):
            images, donors = both[: len(own)].clone(), both[len(own) :]
            if len(donors):
                made = self._exchange(images[own].float() / 255, donors.float() / 255, pair.image[own])
                images[own] = (made.clamp(0, 1) * 255).round().to(torch.uint8)
            yield images


def require_images(split: Split) -> None:
    """Cues are of images in bytes, with one or three channels, and come from another class."""
    shape = tuple(split.sample_shape)
    require(
        len(shape) == 3 and shape[0] in (1, 3) and split.x.dtype == torch.uint8,
        f"Cues can be swapped between images of 1 or 3 channels only, but these samples have the shape {shape}.",
    )
    require(
        len(split.y.unique()) > 1,
        "Cues are swapped between classes, but these images are all of one class; add images of another.",
    )


def donors_of_other_classes(y: Tensor, copies: int, generator: torch.Generator) -> Tensor:
    """For each sample so many donors, (copies, samples): first another class, each as likely, then any of its samples.

    >>> y = torch.tensor([0, 0, 1, 2])
    >>> bool((y[donors_of_other_classes(y, 5, torch.Generator())] != y).all())
    True
    """
    labels, place, sizes = y.unique(return_inverse=True, return_counts=True)
    others = (place + torch.randint(1, len(labels), (copies, len(y)), generator=generator)) % len(labels)
    members = place.argsort(stable=True)  # class by class
    first = sizes.cumsum(0) - sizes
    nth = (torch.rand(others.shape, generator=generator, dtype=torch.float64) * sizes[others]).long()
    donors: Tensor = members[first[others] + nth]
    return donors


def with_copies(split: Split, exchange: Exchange, copies: int, seed: int, *, originals: bool = True) -> Split:
    """The samples of ``split``, behind them ``copies`` of each in the same order; nothing is known of their groups."""
    own = torch.arange(len(split))
    donors = donors_of_other_classes(split.y, copies, stream(seed, "donors"))
    parts = [*([own] if originals else []), *donors]
    pairing = Pairing(own.repeat(len(parts)), torch.cat(parts))
    images = SwappedImages(split.x, pairing, exchange)
    return replace(split, x=images, y=split.y.repeat(len(parts)), attributes={}, mask=None)


def usual_share(classes: int) -> float:
    """The share of copies at which a cue says nothing: each class's cue is then as likely with every label.

    >>> usual_share(2), usual_share(10)
    (0.5, 0.9)
    """
    return (classes - 1) / classes


@dataclass(frozen=True, eq=False)
class OneOfEach(Passes):
    """Every image once an epoch, as it is or as one of its copies, which are drawn for each epoch again."""

    counts: ClassVar[str] = "epoch"
    copies: int = 1
    share: float = 0.5  # of copies

    def rounds(self, n: int, recipe: Recipe, ranks: int) -> Sequence[int]:
        return super().rounds(n // (1 + self.copies), recipe, ranks)

    def batches(self, place: Place, number: int, first: int, steps: int) -> Generator[Drawn, None, None]:
        images = len(place.split) // (1 + self.copies)
        draw = stream(place.session.seed, place.stage, number, "copies")
        which = torch.randint(1, 1 + self.copies, (images,), generator=draw)
        which[torch.rand(images, generator=draw) >= self.share] = 0
        order = stream(place.session.seed, place.stage, number, "order")
        batches = epoch_batches(images, place.batch_size, order, place.session.fabric.world_size)
        yield from self.drawn(place, number, [index + which[index] * images for index in batches])
