"""Copies of images with the cue of an image of another class: made when they are read, and the same each time."""

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
from unspur.parts.cues.region import Region
from unspur.parts.cues.standing_out import StandsOut
from unspur.train.orders import Drawn, Passes, Place, epoch_batches
from unspur.train.recipe import Recipe

READ = 256  # images at a time


class Change(Protocol):
    """What turns images and donors (floats in [0, 1]) into copies; ``index`` are the images' places in their split."""

    def __call__(self, images: Tensor, donors: Tensor, index: Tensor) -> Tensor: ...


class Exchange(Change, Protocol):
    """A change that says which donors it needs."""

    def donors(self, split: Split, copies: int, share: float | None, generator: torch.Generator) -> Tensor:
        """``copies`` donors for each sample of ``split``: (copies, samples).

        ``share`` is the share of copies in what is trained on; None: copies are made to mislead, not to train on.
        """
        ...


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

    def donors(self, split: Split, copies: int, share: float | None, generator: torch.Generator) -> Tensor:
        """Images of other classes; for marks that images may lack, images with and without one, whatever the class."""
        marks = [cue for cue in self.cues if may_lack(cue)]
        if not marks:
            return donors_across_classes(split.y, copies, generator, share)
        return donors_with_and_without(
            showing(marks, split.x), split.y, copies, 1.0 if share is None else share, generator
        )


@dataclass(frozen=True, eq=False)
class MaskExchange:
    """What a mask hides in an image is replaced by the same place of the donor."""

    mask: Mask

    def __call__(self, images: Tensor, donors: Tensor, index: Tensor) -> Tensor:
        keep = self.mask.keep(index).unsqueeze(1)
        return images * keep + donors * (1 - keep)

    def donors(self, split: Split, copies: int, share: float | None, generator: torch.Generator) -> Tensor:
        """Images of other classes."""
        return donors_across_classes(split.y, copies, generator, share)


def may_lack(cue: Cue) -> bool:
    """Whether there may be images without the cue: every image has a colour, but not every one a coloured mark."""
    return isinstance(cue, Region) and isinstance(cue.find, StandsOut)


def showing(cues: Sequence[Cue], images: Source) -> Tensor:
    """(n,) whether any of the cues is visible in each image (bytes)."""
    parts = []
    for index in torch.arange(images.shape[0]).split(READ):
        pictures = images[index].expand(-1, 3, -1, -1).float() / 255
        parts.append(torch.stack([cue.outline(pictures).flatten(1).any(1) for cue in cues]).any(0))
    return torch.cat(parts)


class Pairing(NamedTuple):
    """Which image each sample is made of, and whose cue it gets; an image that is its own donor stays as it is."""

    image: Tensor
    donor: Tensor

    def at(self, index: Tensor) -> Pairing:
        return Pairing(self.image[index], self.donor[index])


class SwappedImages:
    """Images by index whose cues are swapped when they are read: a source for a Split."""

    def __init__(self, images: Source, pairing: Pairing, change: Change) -> None:
        self._images, self._pairing, self._change = images, pairing, change

    @property
    def shape(self) -> torch.Size:
        return torch.Size([len(self._pairing.image), *self._images.shape[1:]])

    @property
    def dtype(self) -> torch.dtype:
        return self._images.dtype

    def __getitem__(self, index: Tensor, /) -> Tensor:
        return next(self.reading([index]))

    def subset(self, index: Tensor, /) -> SwappedImages:
        return SwappedImages(self._images, self._pairing.at(index), self._change)

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
                made = self._change(images[own].float() / 255, donors.float() / 255, pair.image[own])
                images[own] = (made.clamp(0, 1) * 255).round().to(torch.uint8)
            yield images


def require_images(split: Split) -> None:
    """Raise an error unless ``split`` has images in bytes, with one or three channels, of several classes."""
    shape = tuple(split.sample_shape)
    require(
        len(shape) == 3 and shape[0] in (1, 3) and split.x.dtype == torch.uint8,
        f"Cues can be swapped between images of 1 or 3 channels only, but these samples have the shape {shape}.",
    )
    require(
        len(split.y.unique()) > 1,
        "Cues are swapped between classes, but these images are all of one class; add images of another.",
    )


def donors_across_classes(y: Tensor, copies: int, generator: torch.Generator, share: float | None = None) -> Tensor:
    """``copies`` donors for each sample, (copies, samples): a random other class, then a random sample of that class.

    If the ``share`` of copies in the training data is so large that a sample's own cue would be less likely than those
    of other classes, some donors are of its own class: just enough to make every class's cue equally likely with each
    label.

    >>> y = torch.tensor([0, 0, 1, 2])
    >>> bool((y[donors_across_classes(y, 5, torch.Generator())] != y).all())
    True
    >>> donors = donors_across_classes(y, 3000, torch.Generator().manual_seed(0), share=1.0)
    >>> round(float((y[donors] == y).float().mean()), 1)
    0.3
    """
    labels, place, sizes = y.unique(return_inverse=True, return_counts=True)
    away = torch.randint(1, len(labels), (copies, len(y)), generator=generator)
    own = 0.0 if share is None else 1 - usual_share(len(labels)) / share
    if own > 0:
        away[torch.rand(away.shape, generator=generator) < own] = 0
    others = (place + away) % len(labels)
    members = place.argsort(stable=True)  # class by class
    first = sizes.cumsum(0) - sizes
    nth = (torch.rand(others.shape, generator=generator, dtype=torch.float64) * sizes[others]).long()
    donors: Tensor = members[first[others] + nth]
    return donors


def donors_with_and_without(shows: Tensor, y: Tensor, copies: int, share: float, generator: torch.Generator) -> Tensor:
    """``copies`` donors for each sample, (copies, samples); about half show a mark, however few samples do.

    Donors of another class would hardly ever show a mark that few images have. A class whose own samples show it more
    often gets fewer such donors: with this ``share`` of copies the mark is equally likely with every label.

    >>> shows, y = torch.tensor([True] * 2 + [False] * 8), torch.tensor([0] * 5 + [1] * 5)  # 0.4 of class 0 show it
    >>> donors = donors_with_and_without(shows, y, 2000, 0.5, torch.Generator().manual_seed(0))
    >>> [round(float(shows[donors[:, y == label]].float().mean()), 1) for label in (0, 1)]  # 0.4 + 0.3 and 0 + 0.7
    [0.3, 0.7]
    """
    pools = [pool for pool in (shows.nonzero().squeeze(1), (~shows).nonzero().squeeze(1)) if len(pool)]
    size = (copies, len(shows))
    drawn = [pool[torch.randint(len(pool), size, generator=generator)] for pool in pools]
    labels, place = y.unique(return_inverse=True)
    own = torch.stack([shows[y == label].double().mean() for label in labels])
    wanted = 0.5 + (own.mean() - own) * (1 - share) / share
    return torch.where(torch.rand(size, generator=generator) < wanted[place], drawn[0], drawn[-1])


def with_copies(
    split: Split, exchange: Exchange, copies: int, seed: int, *, share: float | None = None, originals: bool = True
) -> Split:
    """The samples of ``split``, followed by ``copies`` of each in the same order; their groups are unknown.

    ``share``: the share of copies in what is trained on; None: copies are made to mislead, not to train on.
    """
    own = torch.arange(len(split))
    donors = exchange.donors(split, copies, share, stream(seed, "donors"))
    parts = [*([own] if originals else []), *donors]
    pairing = Pairing(own.repeat(len(parts)), torch.cat(parts))
    images = SwappedImages(split.x, pairing, exchange)
    return replace(split, x=images, y=split.y.repeat(len(parts)), attributes={}, mask=None)


def usual_share(classes: int) -> float:
    """The share of copies at which a cue says nothing: each class's cue is then equally likely with every label.

    >>> usual_share(2), usual_share(10)
    (0.5, 0.9)
    """
    return (classes - 1) / classes


@dataclass(frozen=True, eq=False)
class OneOfEach(Passes):
    """Every image once per epoch, either unchanged or as one of its copies; which one is drawn again in each epoch."""

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
