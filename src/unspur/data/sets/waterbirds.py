"""Waterbirds (Sagawa et al., 2019), and the release that MaskTune's authors corrected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from unspur.data.images.layout import Entries, ImageSet, Row, check_header, counts_of, entries_of, images_in, renamed
from unspur.data.images.listing import list_table
from unspur.data.images.table import read_table
from unspur.data.spec import About, Count
from unspur.errors import require

BIRDS, PLACES = ("landbird", "waterbird"), ("land", "water")
SPLITS = ("train", "val", "test")
COLUMNS = ("img_id", "img_filename", "y", "split", "place", "place_filename")
COUNTS = {"train": (3498, 184, 56, 1057), "val": (467, 466, 133, 133), "test test": (2255, 2255, 642, 642)}


@dataclass(frozen=True)
class Waterbirds(ImageSet):
    """Birds of land and water, pasted on land and water; 95 % of training birds are where they live.

    The corrected release has some images removed and some species relabelled; its authors gave no counts.
    """

    name: ClassVar[str] = "waterbirds"
    about: ClassVar[About] = About(
        "Sagawa et al., Distributionally robust neural networks, arXiv:1911.08731; corrected: Asgari et al., MaskTune, "
        "arXiv:2210.00055",
        "none stated; made of CUB-200-2011 (research and education only) and Places (CC BY)",
        "waterbird_complete95_forest2water2.tar.gz, linked from github.com/kohpangwei/group_DRO; corrected: linked "
        "from github.com/aliasgharkhani/Masktune",
    )
    title: ClassVar[str] = "Waterbirds"
    marks: ClassVar[tuple[str, ...]] = ("metadata.csv",)

    release: Literal["original", "corrected"] = "original"  # original, or corrected by MaskTune's authors

    def places(self) -> tuple[str, ...]:
        if self.release == "corrected":
            return ("waterbirds_corrected", "Waterbirds")
        archive = "waterbird_complete95_forest2water2"
        return ("waterbirds", archive, f"waterbirds/{archive}", f"cub/data/{archive}")

    def entries(self, root: Path) -> Entries:
        table = root / "metadata.csv"
        check_header(table, COLUMNS)
        if (root / "images").is_dir():
            return self._sorted_by_label(root, table)
        listing = list_table(root, table, file="img_filename", label="y", split="split", attributes=("place",))
        numbers = ("0", "1")
        named = renamed(listing, dict(zip(numbers, BIRDS, strict=True)), place=dict(zip(numbers, PLACES, strict=True)))
        return Entries(named, BIRDS, {"place": PLACES})

    def expected(self) -> tuple[Count, ...]:
        if self.release == "corrected":
            return ()
        groups = [(bird, place) for bird in BIRDS for place in PLACES]
        return counts_of(COUNTS, groups)

    def _sorted_by_label(self, root: Path, path: Path) -> Entries:
        """The layout images/SPLIT/LABEL/FILE, for which the table only gives the places."""
        table = read_table(path)
        names = (Path(name).name for name in table.columns["img_filename"])
        place = dict(zip(names, table.columns["place"], strict=True))
        rows = []
        for split in SPLITS:
            for label, bird in enumerate(BIRDS):
                for file in images_in(root, f"images/{split}/{label}"):
                    name = Path(file.name).name
                    require(place.get(name) in ("0", "1"), f"{path} does not say in which place {root / file.name} is.")
                    rows.append(Row([file], split, bird, place=PLACES[int(place[name])]))
        return entries_of(root, rows, BIRDS, {"place": PLACES})
