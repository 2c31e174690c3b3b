"""CelebA (Liu et al., 2015): hair colour with gender as the shortcut, or the other way round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from unspur.data.images.decode import SquareFit
from unspur.data.images.layout import Entries, ImageSet, check_header, counts_of, renamed
from unspur.data.images.listing import list_table
from unspur.data.images.table import FILE, SPLIT
from unspur.data.spec import About, Count
from unspur.errors import require

HAIR, GENDER = ("not blond", "blond"), ("female", "male")
COUNTS = {  # (not blond, female), (not blond, male), (blond, female), (blond, male)
    "train": (71629, 66874, 22880, 1387),
    "val": (8535, 8276, 2874, 182),
    "test test": (9767, 7535, 2480, 180),
}


@dataclass(frozen=True)
class CelebA(ImageSet):
    """Faces: blond or not, with gender as the shortcut; or female or male, with the hair as the shortcut.

    The aligned and cropped images, whose middle is taken, as is usual. Lists are read as their authors publish them
    (.txt) or as on Kaggle (.csv).
    """

    name: ClassVar[str] = "celeba"
    about: ClassVar[About] = About(
        "Liu, Luo, Wang and Tang, Deep learning face attributes in the wild, 2015",
        "non-commercial research only",
        "img_align_celeba, list_attr_celeba and list_eval_partition from mmlab.ie.cuhk.edu.hk/projects/CelebA.html, "
        "or on Kaggle as jessicali9530/celeba-dataset",
    )
    title: ClassVar[str] = "CelebA"
    folders: ClassVar[tuple[str, ...]] = ("celeba", "celebA/data", "CelebA", "celeba/archive", "CelebA/raw")
    marks: ClassVar[tuple[str, ...]] = ("img_align_celeba",)

    fit: SquareFit = "crop"  # crop: an image's middle; stretch: all of it; pad: all of it with black beside it
    task: Literal["hair", "gender"] = "hair"  # the class: hair (blond or not), or gender (large-LR's)

    def entries(self, root: Path) -> Entries:
        attributes, partition = (_list(root, name) for name in ("list_attr_celeba", "list_eval_partition"))
        check_header(attributes, ("Blond_Hair", "Male"))
        nested = root / "img_align_celeba" / "img_align_celeba"  # as Kaggle packs it
        label, other = ("Blond_Hair", "Male") if self.task == "hair" else ("Male", "Blond_Hair")
        listing = list_table(
            root,
            attributes,
            file="image_id" if attributes.suffix == ".csv" else FILE,
            label=label,
            split="partition" if partition.suffix == ".csv" else SPLIT,
            split_path=partition,
            attributes=(other,),
            images=str(nested.relative_to(root)) if nested.is_dir() else "img_align_celeba",
        )
        signs = ("-1", "1")
        hair, gender = dict(zip(signs, HAIR, strict=True)), dict(zip(signs, GENDER, strict=True))
        if self.task == "hair":
            listing = renamed(listing, hair, Male=gender)
            attribute, classes, values = "gender", HAIR, GENDER
        else:
            listing = renamed(listing, gender, Blond_Hair=hair)
            attribute, classes, values = "hair", GENDER, HAIR
        listing = replace(listing, attributes={attribute: listing.attributes[other]})
        return Entries(listing, classes, {attribute: values})

    def expected(self) -> tuple[Count, ...]:
        groups = [(hair, gender) for hair in HAIR for gender in GENDER]
        if self.task == "gender":
            groups = [(gender, hair) for hair, gender in groups]
        return counts_of(COUNTS, groups)


def _list(root: Path, name: str) -> Path:
    """The list ``name``, as published or as on Kaggle."""
    paths = [root / f"{name}{ending}" for ending in (".csv", ".txt")]
    found = next((path for path in paths if path.is_file()), None)
    require(found is not None, f"{root} lacks {paths[0].name} or {paths[1].name}; get it as the images.")
    assert found is not None
    return found
