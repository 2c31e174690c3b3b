"""Your own images: class folders, split folders, or a table. Decoded once, or each time where the disk is too small."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from unspur.core.files import user_path
from unspur.core.options import added
from unspur.data.augment import Augment
from unspur.data.base import Dataset, Split
from unspur.data.images.cache import MappedImages
from unspur.data.images.decode import SquareFit
from unspur.data.images.group_table import hold_out_labelled
from unspur.data.images.listing import Listing, list_folder, list_table
from unspur.data.images.on_demand import ImagesOnDemand
from unspur.data.images.splitting import codes, names_in_order, partition
from unspur.data.images.stored import some_of, stored_images
from unspur.data.spec import About, DataSpec
from unspur.errors import require

if TYPE_CHECKING:
    from unspur.data.files.fetch import DataFiles

CUE = "cue"  # the attribute that a table of groups gives


@dataclass(frozen=True)
class Folder(DataSpec):
    """Your own images, in class folders or listed in a CSV with labels, splits and attributes."""

    name: ClassVar[str] = "folder"
    about: ClassVar[About] = About(
        citation="your own images",
        licence="yours",
        get="--set data.root=PATH: PATH/CLASS/*, PATH/train|val|test/CLASS/*, or a table with --set data.csv=FILE",
    )
    usual_arch: ClassVar[str] = "resnet18"
    root: str = ""  # the folder of the images
    csv: str = ""  # a table in that folder (or a path to one); empty: folders name the classes
    file: str = "filename"  # the table's column of file names
    images: str = ""  # the folder below root that these names start from
    label: str = "label"  # the table's column of labels
    split: str = ""  # its column of splits: train, val, test or 0, 1, 2; empty: 'split' where there is one
    split_csv: str = ""  # another table with that column, as CelebA has
    attributes: tuple[str, ...] = ()  # its columns of attributes, if any
    size: int = 128  # pixels each side of the square images; pretrained networks are used to 224
    fit: SquareFit = "stretch"  # stretch: all of an image; crop: its middle; pad: all of it with black beside it
    val: float = 0.1  # the share of the training images to validate on where no split says so; 0: none
    test: float = 0.2  # the share of all images to test on where no split says so
    seed: int = 0  # of these draws
    skip_broken: bool = False  # go on without files that cannot be decoded
    stream: bool = False  # decode again each time: slower, but nothing decoded is kept on disk
    augment: Augment = Augment()  # how training images are moved
    groups: str = added("")  # an audit's groups.csv: training images ticked in it validate, with their groups

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.size >= 1, f"data.size must be at least 1 pixel but got {self.size}.")
        require(0 <= self.val < 1, f"data.val must lie in [0, 1) but got {self.val}.")
        require(0 < self.test < 1, f"data.test must lie in (0, 1) but got {self.test}.")
        table = {"file": "filename", "images": "", "label": "label", "split": "", "split_csv": "", "attributes": ()}
        for option, default in table.items():
            require(
                bool(self.csv) or getattr(self, option) == default,
                f"data.{option} is an option of tables; name the table with --set data.csv=FILE.",
            )

    def load(self, files: DataFiles) -> Dataset:
        listing, images, content = self.images_of(self.listed(files), files)
        return assemble(
            self.name,
            listing,
            images,
            content,
            val=self.val,
            test=self.test,
            seed=self.seed,
            augment=self.augment,
            groups=self.groups,
        )

    def images_of(
        self, listing: Listing, files: DataFiles
    ) -> tuple[Listing, MappedImages | ImagesOnDemand, Sequence[bytes]]:
        """The listed images that can be decoded, their pixels and a hash of each one's content."""
        return stored_images(
            listing, files.cache, self.size, self.fit, skip_broken=self.skip_broken, on_demand=self.stream
        )

    @property
    def table(self) -> Path:
        """Where the table is that ``csv`` names."""
        return _table_path(user_path(self.root), self.csv)

    def training_content(self, files: DataFiles) -> set[bytes]:
        """The hashes of the images that ``load`` gives for training."""
        listing, _, content = self.images_of(self.listed(files), files)
        y = codes(listing.labels, names_in_order(listing.labels))
        parts, _ = partition(listing, y, self.val, self.test, self.seed)
        return {content[number] for number in parts["train"].tolist()}

    def listed(self, files: DataFiles) -> Listing:
        """``listing``, made once per command, whatever sizes and shares are tried."""
        table = (self.csv, self.file, self.images, self.label, self.split, self.split_csv, self.attributes)
        return files.once((self.name, self.root, *table), self.listing)

    def listing(self, splits: bool = True) -> Listing:
        """The images with labels, splits (unless ``splits`` is False) and attributes; none is opened."""
        require(bool(self.root), "The data set 'folder' needs your images' folder; name it with --set data.root=PATH.")
        root = user_path(self.root)
        if not self.csv:
            return list_folder(root)
        return list_table(
            root,
            self.table,
            file=self.file,
            label=self.label,
            split=self.split if splits else None,
            split_path=_table_path(root, self.split_csv) if self.split_csv else None,
            attributes=self.attributes,
            images=self.images,
        )


def assemble(
    name: str,
    listing: Listing,
    images: MappedImages | ImagesOnDemand,
    content: Sequence[bytes],
    *,
    val: float,
    test: float,
    seed: int,
    augment: Augment,
    groups: str = "",
) -> Dataset:
    """A data set of listed images, split as the listing says or as drawn, its classes and attributes sorted by name."""
    classes = names_in_order(listing.labels)
    y = codes(listing.labels, classes)
    values = {name: names_in_order(column) for name, column in listing.attributes.items()}
    columns = {name: codes(column, values[name]) for name, column in listing.attributes.items()}
    parts, drawn = partition(listing, y, val, test, seed)
    labelled: dict[str, Tensor] = {}  # what is known of the validation images alone
    cues: list[str] = []
    if groups:
        parts, cues, note = hold_out_labelled(parts, listing, groups)
        drawn = [*drawn, note]
        if CUE not in columns:  # or the listing knows it of every image
            values[CUE] = names_in_order(cues)
            labelled = {CUE: codes(cues, values[CUE])}

    def split(part: str, augment: Augment | None = None) -> Split:
        index = parts[part]
        chosen = {name: column[index] for name, column in columns.items()}
        return Split(images.subset(index), y[index], chosen | (labelled if part == "val" else {}), augment=augment)

    notes = [*listing.notes, *drawn, *duplicates(listing, parts, content)]
    return Dataset(
        name,
        split("train", augment),
        split("val"),
        {"test": split("test")},
        classes,
        values,
        note=" ".join(notes),
        content=_digest(parts, content, cues),
    )


def _digest(parts: dict[str, Tensor], content: Sequence[bytes], cues: Sequence[str]) -> str:
    """A hash of every image of every split, and of the validation images' cues."""
    digest = hashlib.sha256()
    for part, index in parts.items():
        digest.update(part.encode())
        for number in index.tolist():
            digest.update(content[number])
    for cue in cues:
        digest.update(f"{cue}\0".encode())
    return digest.hexdigest()[:32]


def duplicates(listing: Listing, parts: dict[str, Tensor], content: Sequence[bytes]) -> list[str]:
    """A sentence on images that are in more than one split, byte for byte, if there are any."""
    first: dict[bytes, tuple[str, int]] = {}
    pairs = []
    for part, index in parts.items():
        for number in index.tolist():
            earlier, other = first.setdefault(content[number], (part, number))
            if earlier != part:
                pairs.append(f"{listing.place(number)} in {part} is {listing.place(other)} in {earlier}")
    if not pairs:
        return []
    return [f"Images that are in an earlier split too: {len(pairs):,} ({some_of(pairs)})."]


def _table_path(root: Path, name: str) -> Path:
    path = user_path(name)
    return root / path if (root / path).exists() or not path.exists() else path
