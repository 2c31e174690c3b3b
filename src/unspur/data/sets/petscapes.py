"""Petscapes: cats and dogs pasted on sea and forest by Waterbirds' recipe. It is not Waterbirds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unspur.data.images.layout import Entries, ImageSet, check_header, counts_of, renamed
from unspur.data.images.listing import list_table
from unspur.data.spec import About, Count

ANIMALS, PLACES = ("cat", "dog"), ("sea", "forest")
COLUMNS = ("img_filename", "y", "split", "place")
COUNTS = {"train": (827, 38, 96, 2072), "val": (151, 140, 161, 139), "test test": (590, 576, 1212, 1228)}


@dataclass(frozen=True)
class Petscapes(ImageSet):
    """Cats and dogs, cut out and pasted on sea and forest; 95 % of training cats are at sea, of dogs in the forest.

    Places are random in validation and test images. The animals' masks are the data set's ``foreground``.
    """

    name: ClassVar[str] = "petscapes"
    about: ClassVar[About] = About(
        "animals: Parkhi et al., Cats and dogs, 2012 (Oxford-IIIT Pet); places: Intel scene classification images",
        "animals CC BY-SA 4.0; places: none stated",
        "images cut out by the pets' published trimaps and pasted, 128x128, with metadata.csv in Waterbirds' columns",
    )
    usual_arch: ClassVar[str] = "resnet18"
    title: ClassVar[str] = "Petscapes"
    folders: ClassVar[tuple[str, ...]] = ("petscapes",)
    marks: ClassVar[tuple[str, ...]] = ("metadata.csv", "images", "masks")

    size: int = 128  # pixels each side of the square images

    def entries(self, root: Path) -> Entries:
        table = root / "metadata.csv"
        check_header(table, COLUMNS)
        listing = list_table(root, table, file="img_filename", label="y", split="split", attributes=("place",))
        numbers = ("0", "1")
        named = renamed(
            listing, dict(zip(numbers, ANIMALS, strict=True)), place=dict(zip(numbers, PLACES, strict=True))
        )
        return Entries(named, ANIMALS, {"place": PLACES})

    def mask_of(self, image: str) -> str:
        return f"masks/{Path(image).stem}.png"

    def expected(self) -> tuple[Count, ...]:
        return counts_of(COUNTS, [(animal, place) for animal in ANIMALS for place in PLACES])
