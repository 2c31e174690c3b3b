"""Biased FFHQ (Kim et al., 2021): young or old, with gender as the shortcut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unspur.data.images.cache import ImageFile
from unspur.data.images.layout import Entries, ImageSet, Row, entries_of, images_in
from unspur.data.spec import About, Count
from unspur.errors import UnspurError

AGES, GENDERS = ("young", "old"), ("female", "male")
ALIGNED = (("young", "female"), ("old", "male"))
CONFLICTING = (("young", "male"), ("old", "female"))
NAME = re.compile(r"[^_]+_([01])_([01])\.png")


@dataclass(frozen=True)
class BFFHQ(ImageSet):
    """Faces, young or old; of the training images 99.5 % are young women or old men.

    A file is called NUMBER_AGE_GENDER.png. The publishers do not say what the digits mean. We read them in the order in
    which the papers name the values: 0_0 is a young woman and 1_1 an old man, both aligned. The whole test set is used;
    half of it is aligned (the first authors' code drops that half).
    """

    name: ClassVar[str] = "bffhq"
    about: ClassVar[About] = About(
        "Kim, Lee and Choo, BiaSwap, ICCV 2021; DCWP, appendix E.1",
        "CC BY-NC-SA 4.0 (FFHQ), each photograph under a licence of its own",
        "linked from github.com/kakaoenterprise/Learning-Debiased-Disentangled",
    )
    usual_arch: ClassVar[str] = "resnet18"
    title: ClassVar[str] = "Biased FFHQ"
    folders: ClassVar[tuple[str, ...]] = ("bffhq", "bffhq/bffhq")
    marks: ClassVar[tuple[str, ...]] = ("0.5pct", "valid", "test")

    def entries(self, root: Path) -> Entries:
        training = (f"0.5pct/{side}/{age}" for side in ("align", "conflict") for age in (0, 1))
        rows = [row for folder in training for row in _rows(images_in(root, folder), "train")]
        rows += _rows(images_in(root, "valid"), "val") + _rows(images_in(root, "test"), "test")
        return entries_of(root, rows, AGES, {"gender": GENDERS})

    def expected(self) -> tuple[Count, ...]:
        return (
            Count("train", 19_104, ALIGNED),
            Count("train", 96, CONFLICTING),
            Count("test test", 500, ALIGNED),
            Count("test test", 500, CONFLICTING),
        )


def _rows(files: Sequence[ImageFile], split: str) -> list[Row]:
    rows = []
    for file in files:
        digits = NAME.fullmatch(Path(file.name).name)
        if digits is None:
            raise UnspurError(f"{file.name} is not called NUMBER_AGE_GENDER.png, as the images of Biased FFHQ are.")
        rows.append(Row([file], split, AGES[int(digits[1])], gender=GENDERS[int(digits[2])]))
    return rows
