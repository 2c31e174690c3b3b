"""ImageNet-1k (ILSVRC 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unspur.data.images.decode import SquareFit
from unspur.data.images.layout import Entries, Row, WithoutValidation, entries_of, images_in
from unspur.data.spec import About, Count
from unspur.errors import require


@dataclass(frozen=True)
class ImageNet(WithoutValidation):
    """Photographs of a thousand kinds of things; tested on the 50,000 that its authors call the validation set.

    Classes are called by their WordNet numbers, the folders' names. Whoever has room for about 190 GB of decoded images
    in the cache may set stream=false.
    """

    name: ClassVar[str] = "imagenet"
    about: ClassVar[About] = About(
        "Russakovsky et al., ImageNet large scale visual recognition challenge, arXiv:1409.0575",
        "non-commercial research and education only",
        "ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar from image-net.org, unpacked into a folder for each class",
    )
    title: ClassVar[str] = "ImageNet"
    folders: ClassVar[tuple[str, ...]] = (
        "imagenet",
        "ILSVRC2012",
        "ILSVRC/Data/CLS-LOC",
        "imagenet/ILSVRC/Data/CLS-LOC",
    )
    marks: ClassVar[tuple[str, ...]] = ("train", "val")

    fit: SquareFit = "crop"  # crop: an image's middle; stretch: all of it; pad: all of it with black beside it
    stream: bool = True  # decode again each time, so that nothing decoded is kept on disk
    val: float = 0.02  # the share of the training images to validate on; 0: none

    def entries(self, root: Path) -> Entries:
        classes = tuple(sorted(path.name for path in (root / "train").iterdir() if path.is_dir()))
        require(bool(classes), f"{root / 'train'} has no folders of classes; unpack ILSVRC2012_img_train.tar there.")
        loose = next((path for path in (root / "val").iterdir() if path.is_file()), None)
        require(
            loose is None,
            f"{loose} lies in no folder of a class; sort the validation images into folders named as those of train.",
        )
        rows = [
            Row(images_in(root, f"{folder}/{name}"), split, name)
            for split, folder in (("train", "train"), ("test", "val"))
            for name in classes
        ]
        return entries_of(root, rows, classes)

    def expected(self) -> tuple[Count, ...]:
        held = self.held_out(1_281_167)
        return Count("train", 1_281_167 - held), Count("val", held), Count("test test", 50_000)
