"""ImageNet-9 and the Background Challenge (Xiao et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unspur.data.images.layout import Entries, ImageSet, Row, entries_of, images_in
from unspur.data.spec import About, Count
from unspur.errors import UnspurError

CLASSES = (
    "dog", "bird", "wheeled vehicle", "reptile", "carnivore", "insect", "musical instrument", "primate", "fish",
)  # fmt: skip
VARIATIONS = ("original", "mixed_same", "mixed_rand", "only_fg")


@dataclass(frozen=True)
class IN9(ImageSet):
    """Nine kinds of things of ImageNet, tested with their own, another, and no background (Background Challenge).

    mixed_same: the background of another image of the class; mixed_rand: of any class; only_fg: black.
    """

    name: ClassVar[str] = "in9"
    about: ClassVar[About] = About(
        "Xiao, Engstrom, Ilyas and Madry, Noise or signal, arXiv:2006.09994",
        "ImageNet's: non-commercial research and education only",
        "github.com/MadryLab/backgrounds_challenge: the training data IN-9L (in9l.tar.gz), and from its release "
        "backgrounds_challenge_data.tar.gz into the folder 'test'",
    )
    title: ClassVar[str] = "ImageNet-9"
    folders: ClassVar[tuple[str, ...]] = ("in9", "in9l", "in9l/raw", "imagenet_9")
    marks: ClassVar[tuple[str, ...]] = ("train", "val")

    def entries(self, root: Path) -> Entries:
        tests = next(
            (root / name for name in ("test", "test/bg_challenge", "bg_challenge") if _holds(root / name)), None
        )
        if tests is None:
            wanted = ", ".join(f"test/{name}/val" for name in VARIATIONS)
            raise UnspurError(f"{root} lacks {wanted}; unpack backgrounds_challenge_data.tar.gz there.")
        folders = {"train": "train", "val": "val"}
        folders |= {name: str((tests / name / "val").relative_to(root)) for name in VARIATIONS}
        rows = [
            Row(images_in(root, f"{folder}/{number:02d}_{label}"), split, label)
            for split, folder in folders.items()
            for number, label in enumerate(CLASSES)
        ]
        return entries_of(root, rows, CLASSES)

    def expected(self) -> tuple[Count, ...]:
        return tuple(Count(f"test {name}", 450, ((label,),)) for name in VARIATIONS for label in CLASSES)


def _holds(folder: Path) -> bool:
    return all((folder / name / "val").is_dir() for name in VARIATIONS)
