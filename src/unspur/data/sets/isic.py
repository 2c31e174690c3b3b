"""ISIC 2017: benign lesions and melanomas, where a coloured patch beside the lesion always means benign."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from unspur.data.base import Dataset, Split, Unread
from unspur.data.images.layout import Entries, ImageSet, ListedImages, check_header, counts_of, renamed
from unspur.data.images.listing import Listing, list_table
from unspur.data.shortcuts.disc import Disc
from unspur.data.shortcuts.drawn import Colour
from unspur.data.shortcuts.drawn_images import DrawnImages
from unspur.data.spec import About, Count

KINDS, PATCHES = ("benign", "melanoma"), ("none", "patch")
COUNTS = {  # benign without and with a patch, melanoma without and with one
    "train": (1043, 93, 263, 0),
    "val": (241, 21, 61, 0),
    "test test": (320, 28, 80, 0),
    "test patch": (0, 0, 0, 80),
    "test control": (0, 0, 80, 0),
}
COLOURS: tuple[Colour, ...] = (  # of the commonest patches, medians over training images: teal, blue, yellow, green
    (110, 176, 180),
    (7, 137, 206),
    (210, 189, 48),
    (82, 161, 95),
)
ALONG = (0.25, 0.5, 0.75)  # places along an edge
PLACES = (
    *(Disc(row=row, column=column) for column in (1, 0) for row in ALONG),
    *(Disc(row=row, column=column) for row in (0, 1) for column in ALONG),
)


@dataclass(frozen=True)
class ISIC(ImageSet):
    """Skin lesions, benign or melanoma; 142 benign images show a coloured patch, and not one melanoma does.

    The worst group, a melanoma with a patch, has no image. So there are two more test sets of the test melanomas:
    ``patch`` with a coloured disc beside the lesion, and ``control`` with a disc in the colour of the skin around it,
    in the same place. A model that leans on patches misses melanomas in ``patch`` that it finds in ``control``.
    """

    name: ClassVar[str] = "isic"
    about: ClassVar[About] = About(
        "Codella et al., Skin lesion analysis toward melanoma detection, arXiv:1710.05006; patches marked by hand",
        "CC-0",
        "training and validation images from challenge.isic-archive.com, 256x256, with metadata.csv: img_filename, "
        "label, split, coloured_patch",
    )
    usual_arch: ClassVar[str] = "resnet18"
    title: ClassVar[str] = "ISIC 2017"
    folders: ClassVar[tuple[str, ...]] = ("isic2017", "isic")
    marks: ClassVar[tuple[str, ...]] = ("metadata.csv", "images")

    def entries(self, root: Path) -> Entries:
        table = root / "metadata.csv"
        check_header(table, ("img_filename", "label", "split", "coloured_patch"))
        listing = list_table(root, table, file="img_filename", label="label", attributes=("coloured_patch",))
        kinds = {kind: kind for kind in KINDS}
        named = renamed(listing, kinds, coloured_patch=dict(zip(("0", "1"), PATCHES, strict=True)))
        return Entries(named, KINDS, {"coloured_patch": PATCHES})

    def assemble(self, entries: Entries, listing: Listing, images: ListedImages) -> Dataset:
        data = super().assemble(entries, listing, images)
        test = data.tests["test"]
        melanomas = test.subset((test.y == KINDS.index("melanoma")).nonzero().squeeze(1))
        tests = {
            "patch": _with_discs(melanomas, COLOURS, PATCHES.index("patch")),
            "control": _with_discs(melanomas, (None,), PATCHES.index("none")),
        }
        return replace(data, tests={**data.tests, **tests}, without_shortcut={"patch": "control"})

    def expected(self) -> tuple[Count, ...]:
        groups = [(kind, patch) for kind in KINDS for patch in PATCHES]
        return counts_of(COUNTS, groups)


def _with_discs(split: Split, colours: tuple[Colour | None, ...], patch: int) -> Split:
    assert isinstance(split.x, Unread)
    x = DrawnImages(split.x, beside_the_lesion(colours))
    return replace(split, x=x, attributes={"coloured_patch": torch.full_like(split.y, patch)})


def beside_the_lesion(colours: tuple[Colour | None, ...]) -> Callable[[Tensor, Tensor], Tensor]:
    """Draw a disc at an edge where it hides least of the lesion: lesions are dark, so where the image is lightest.

    The colours alternate with the images' numbers.
    """

    def draw(images: Tensor, numbers: Tensor) -> Tensor:
        lightness = [images[:, :, place.region(images.shape)].float().mean((1, 2)) for place in PLACES]
        lightest = torch.stack(lightness, dim=1).argmax(1)
        planted = images.clone()
        for number, place in enumerate(PLACES):
            chosen = (lightest == number).nonzero().squeeze(1)
            disc = replace(place, colours=colours)
            planted[chosen] = disc.apply(images[chosen], numbers[chosen] % len(colours), torch.Generator())
        return planted

    return draw
