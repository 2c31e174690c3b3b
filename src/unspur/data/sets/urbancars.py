"""UrbanCars (Li et al., 2023): urban or country cars, with two shortcuts at once."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unspur.data.images.layout import Entries, ImageSet, Row, entries_of, images_in
from unspur.data.spec import About, Count

AREAS = ("urban", "country")
FOLDERS = {  # a split's folder names how often each shortcut agrees with the car
    "train": "bg-0.95_co_occur_obj-0.95/train",
    "val": "bg-0.5_co_occur_obj-0.5/val",
    "test": "bg-0.5_co_occur_obj-0.5/test",
}


@dataclass(frozen=True)
class UrbanCars(ImageSet):
    """Urban or country cars; background and a thing beside the car each agree in 95 % of the training images."""

    name: ClassVar[str] = "urbancars"
    about: ClassVar[About] = About(
        "Li et al., A Whac-A-Mole dilemma, arXiv:2212.04825",
        "see its repository; made of Stanford Cars, Places and LVIS",
        "made by the scripts of github.com/facebookresearch/Whac-A-Mole",
    )
    title: ClassVar[str] = "UrbanCars"
    folders: ClassVar[tuple[str, ...]] = ("urbancars", "data/urbancars")
    marks: ClassVar[tuple[str, ...]] = tuple(FOLDERS.values())

    def entries(self, root: Path) -> Entries:
        rows = []
        for split, folder in FOLDERS.items():
            for car, background, thing in itertools.product(AREAS, repeat=3):
                group = f"{folder}/obj-{car}_bg-{background}_co_occur_obj-{thing}"
                files = [file for file in images_in(root, group) if file.name.endswith(".jpg")]  # the rest are masks
                rows.append(Row(files, split, car, background=background, object=thing))
        return entries_of(root, rows, AREAS, {"background": AREAS, "object": AREAS})

    def expected(self) -> tuple[Count, ...]:
        counts = []
        for car, background, thing in itertools.product(AREAS, repeat=3):
            agreeing = (background == car) + (thing == car)
            group = ((car, background, thing),)
            counts.append(Count("train", (10, 190, 3610)[agreeing], group))
            counts += [Count(split, 125, group) for split in ("val", "test test")]
        return tuple(counts)
