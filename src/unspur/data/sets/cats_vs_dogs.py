"""Cats vs. Dogs (Asirra, 2007), as on Kaggle or as Microsoft publishes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torch import Tensor

from unspur.core.seeds import data_stream
from unspur.data.base import stratified_split
from unspur.data.images.layout import Entries, Row, WithoutValidation, entries_of, images_in
from unspur.data.spec import About, Count
from unspur.errors import UnspurError

ANIMALS = ("cat", "dog")


@dataclass(frozen=True)
class CatsVsDogs(WithoutValidation):
    """Photographs of cats and dogs; 5,000 of the 25,000 are drawn for testing, as in SelectiveNet (MaskTune 4.2).

    Read from Kaggle's train/cat.0.jpg, ... or Microsoft's PetImages/Cat/0.jpg, ... Two of Microsoft's files are broken:
    they need skip_broken=true. Which images SelectiveNet's authors drew is not published.
    """

    name: ClassVar[str] = "cats_vs_dogs"
    about: ClassVar[About] = About(
        "Elson, Douceur, Howell and Saul, Asirra, 2007; Geifman and El-Yaniv, SelectiveNet, arXiv:1901.09192",
        "Microsoft Research data licence (research only)",
        "Kaggle's competition dogs-vs-cats (train.zip), or kagglecatsanddogs from Microsoft's download centre",
    )
    usual_arch: ClassVar[str] = "resnet32"
    title: ClassVar[str] = "Cats vs. Dogs"
    folders: ClassVar[tuple[str, ...]] = ("cats_vs_dogs", "dogs-vs-cats", "catsvsdogs", "catsvsdogs/raw")
    marks: ClassVar[tuple[str, ...]] = ()

    size: int = 64  # pixels each side of the square images
    test: float = 0.2  # the share of all images to test on

    def places(self) -> tuple[str, ...]:
        return tuple(f"{folder}/{held}" for folder in self.folders for held in ("train", "PetImages"))

    def entries(self, root: Path) -> Entries:
        if root.name == "PetImages":
            rows = [Row(images_in(root, animal.capitalize()), "train", animal) for animal in ANIMALS]
        else:
            files = images_in(root, "")
            named = {animal: [file for file in files if file.name.startswith(f"{animal}.")] for animal in ANIMALS}
            rows = [Row(found, "train", animal) for animal, found in named.items()]
        empty = next((row.label for row in rows if not row.files), None)
        if empty is not None:
            raise UnspurError(f"{root} holds no images of a {empty}; unpack the data set again.")
        return entries_of(root, rows, ANIMALS)

    def hold_out(self, y: Tensor, splits: Sequence[str]) -> list[str]:
        named = list(splits)
        for number in stratified_split(y, round(self.test * len(y)), data_stream(self.seed, "test split"))[1].tolist():
            named[number] = "test"
        return super().hold_out(y, named)

    def expected(self) -> tuple[Count, ...]:
        test = round(self.test * 25_000)
        val = self.held_out(25_000 - test)
        return Count("train", 25_000 - test - val), Count("val", val), Count("test test", test)
