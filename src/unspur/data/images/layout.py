"""Sets of image files in the layouts in which they were published, with their splits, groups and names."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from unspur.core.files import require_file
from unspur.core.seeds import data_stream
from unspur.data.augment import Augment
from unspur.data.base import Dataset, Source, Split, stratified_split
from unspur.data.files.fetch import DataFiles
from unspur.data.images.cache import ImageFile, MappedImages
from unspur.data.images.decode import SquareFit
from unspur.data.images.foreground import ForegroundMasks
from unspur.data.images.listing import Listing, Walk
from unspur.data.images.on_demand import ImagesOnDemand
from unspur.data.images.splitting import codes
from unspur.data.images.stored import stored_images
from unspur.data.spec import Count, DataSpec, Found
from unspur.errors import DataMissing, UnspurError, require

IMAGENET_MOMENTS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # what pretrained networks expect


@dataclass(frozen=True)
class ImageSet(DataSpec):
    """What published sets of image files have in common. Subclasses know the layout."""

    usual_arch: ClassVar[str] = "resnet50"
    title: ClassVar[str]
    folders: ClassVar[tuple[str, ...]]  # below the data directory; the first that has all marks is the set
    marks: ClassVar[tuple[str, ...]]  # files or folders in it

    size: int = 224  # pixels each side of the square images
    fit: SquareFit = "stretch"  # stretch: all of an image; crop: its middle; pad: all of it with black beside it
    skip_broken: bool = False  # go on without files that cannot be decoded
    stream: bool = False  # decode again each time: slower, but nothing decoded is kept on disk
    augment: Augment = Augment()  # how training images are moved

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.size >= 1, f"data.size must be at least 1 pixel but got {self.size}.")

    @abc.abstractmethod
    def entries(self, root: Path) -> Entries:
        """The images below ``root``; none is opened."""

    def load(self, files: DataFiles) -> Dataset:
        entries = self._entries(self.root(files), files)
        listing, images, _content = stored_images(
            entries.listing, files.cache, self.size, self.fit, skip_broken=self.skip_broken, on_demand=self.stream
        )
        return self.assemble(entries, listing, images)

    def outline(self, files: DataFiles) -> Dataset:
        entries = self._entries(self.root(files), files)
        return self.assemble(entries, entries.listing, _Unopened(len(entries.listing), self.size))

    def found(self, files: DataFiles) -> list[Found]:
        root = self.find(files)
        if root is None:
            return [Found(self.title, None, "missing", self._missing(files))]
        try:
            self._entries(root.resolve(), files)
        except UnspurError as error:
            return [Found(self.title, root, "damaged", str(error))]
        return [Found(self.title, root)]

    def find(self, files: DataFiles) -> Path | None:
        """The folder of the set, if it is here."""
        tops = ([files.data_dir] if files.data_dir else []) + [files.cache]
        places = (top / folder for top in tops for folder in self.places())
        whole = (place for place in places if place.is_dir() and all((place / mark).exists() for mark in self.marks))
        return next(whole, None)

    def places(self) -> tuple[str, ...]:
        """Where the set may lie below the data directory with these options."""
        return self.folders

    def root(self, files: DataFiles) -> Path:
        root = self.find(files)
        if root is None:
            raise DataMissing(self._missing(files))
        return root.resolve()

    def hold_out(self, y: Tensor, splits: Sequence[str]) -> list[str]:
        """The split of each image, with a validation set drawn where the publishers have none."""
        return list(splits)

    def _entries(self, root: Path, files: DataFiles) -> Entries:
        return files.once((self, root), lambda: self.entries(root))

    def _missing(self, files: DataFiles) -> str:
        place = (files.data_dir or Path("DIR")) / self.places()[0]
        told = "" if files.data_dir else ", where --data-dir or UNSPUR_DATA names DIR"
        return (
            f"{self.title} is not on this machine: get it ({self.about.get}) and unpack it so that {place} has "
            f"{' and '.join(self.marks) or 'its images'}{told}."
        )

    def mask_of(self, image: str) -> str | None:
        """The mask, below the root, that shows where the object of ``image`` is; None: the set has no masks."""
        return None

    def assemble(self, entries: Entries, listing: Listing, images: ListedImages) -> Dataset:
        """The listed images as a data set."""
        y = codes(listing.labels, entries.classes)
        columns = {name: codes(listing.attributes[name], values) for name, values in entries.attributes.items()}
        assert listing.splits is not None
        named = self.hold_out(y, listing.splits)
        members: dict[str, list[int]] = {"train": [], "val": []}
        for number, name in enumerate(named):
            members.setdefault(name, []).append(number)
        require(bool(members["train"]), f"{listing.root} holds no training images of {self.title}; unpack it again.")
        splits, foreground = {}, {}
        for name, numbers in members.items():
            index = torch.tensor(numbers, dtype=torch.long)
            chosen = {attribute: column[index] for attribute, column in columns.items()}
            augment = self.augment if name == "train" else None
            splits[name] = Split(images.subset(index), y[index], chosen, augment=augment)
            masks = [mask for number in numbers if (mask := self.mask_of(listing.files[number].name))]
            if masks:
                foreground[name] = ForegroundMasks(listing.root, masks, self.size, self.fit)
        train, val = splits.pop("train"), splits.pop("val")
        return Dataset(
            self.name,
            train,
            val,
            splits,
            entries.classes,
            entries.attributes,
            *IMAGENET_MOMENTS,
            note=" ".join(listing.notes),
            foreground=foreground,
        )


@dataclass(frozen=True)
class WithoutValidation(ImageSet):
    """What published sets without a validation set have in common: a share of the training images is held out."""

    val: float = 0.1  # the share of the training images to validate on; 0: none
    seed: int = 0  # of this draw

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.val < 1, f"data.val must lie in [0, 1) but got {self.val}.")

    def hold_out(self, y: Tensor, splits: Sequence[str]) -> list[str]:
        named = list(splits)
        pool = torch.tensor([number for number, name in enumerate(named) if name == "train"], dtype=torch.long)
        if self.val and len(pool):
            held = stratified_split(y[pool], self.held_out(len(pool)), data_stream(self.seed, "val split"))[1]
            for number in pool[held].tolist():
                named[number] = "val"
        return named

    def held_out(self, count: int) -> int:
        """How many of ``count`` training images are for validation."""
        return round(self.val * count)


@dataclass(frozen=True)
class Entries:
    """Listed images, their labels and attributes given by name, and all names in the publishers' order."""

    listing: Listing  # its splits are "train", "val" and the names of test sets
    classes: tuple[str, ...]
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Row:
    """Images with the same label, split and attributes."""

    def __init__(self, files: Sequence[ImageFile], split: str, label: str, **attributes: str) -> None:
        self.files, self.split, self.label, self.attributes = files, split, label, attributes


def entries_of(
    root: Path, rows: Sequence[Row], classes: tuple[str, ...], attributes: Mapping[str, tuple[str, ...]] | None = None
) -> Entries:
    """Entries of images that were found folder by folder."""
    names = attributes or {}
    return Entries(
        Listing(
            root,
            [file for row in rows for file in row.files],
            [row.label for row in rows for _ in row.files],
            [row.split for row in rows for _ in row.files],
            {name: [row.attributes[name] for row in rows for _ in row.files] for name in names},
        ),
        classes,
        names,
    )


def images_in(root: Path, folder: str) -> list[ImageFile]:
    """The images directly in a folder below ``root``, sorted by name; an error names a folder that is not there."""
    require((root / folder).is_dir(), f"{root / folder} is missing; unpack the data set again, or complete it.")
    return Walk(root).scan(folder)[1]


def renamed(listing: Listing, labels: Mapping[str, str], **attributes: Mapping[str, str]) -> Listing:
    """``listing`` with new names for labels and attributes; a value without a new name is an error."""

    def names(column: Sequence[str], known: Mapping[str, str], what: str) -> list[str]:
        if listing.table is not None:
            listing.table.refuse(
                ["" if value in known else f"the {what} '{value}' is none of {', '.join(known)}" for value in column]
            )
        return [known[value] for value in column]

    columns = {
        name: names(column, attributes[name], name) if name in attributes else column
        for name, column in listing.attributes.items()
    }
    return replace(listing, labels=names(listing.labels, labels, "label"), attributes=columns)


def counts_of(numbers: Mapping[str, Sequence[int]], groups: Sequence[tuple[str, ...]]) -> tuple[Count, ...]:
    """Published numbers of each split, in the order of ``groups``."""
    return tuple(
        Count(split, n, (group,)) for split, row in numbers.items() for group, n in zip(groups, row, strict=True)
    )


def check_header(path: Path, columns: Sequence[str]) -> None:
    """Raise an error unless the table's first lines name all ``columns``, as those of the published table do."""
    require_file(path)
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            header = file.readline() + file.readline()
    except OSError as error:
        raise UnspurError(f"{path} cannot be read ({error.strerror}).") from None
    named = header.replace(",", " ").split()
    for column in columns:
        require(column in named, f"{path} is not the published table: it has no column '{column}'.")


class _Unopened:
    """Stands for images that can be counted but not read."""

    def __init__(self, count: int, size: int) -> None:
        self.shape, self.dtype = torch.Size([count, 3, size, size]), torch.uint8

    def __getitem__(self, index: Tensor, /) -> Tensor:
        raise TypeError("The images of an outline are not read.")

    def subset(self, index: Tensor, /) -> Source:
        return _Unopened(len(index), self.shape[2])

    def reading(self, order: Sequence[Tensor], /) -> Iterator[Tensor]:
        return (self[index] for index in order)


ListedImages = MappedImages | ImagesOnDemand | _Unopened
