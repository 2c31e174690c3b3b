"""Sets of images that benchmarks/audit.py plants shortcuts in: two real classes, written as files."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from audit_plants import Pixels, Plant, Stored
from PIL import Image

from unspur.data.sets.mnist import load_mini

EACH = {"pets": 300, "isic": 300}  # images of a class; of CIFAR-10 and digits:
SMALL_EACH = 400
FIRST = 1_000  # of each CIFAR-10 class: rules and features were set on images before it
CIFAR = {"cat_dog": (3, 5), "plane_ship": (0, 8), "deer_horse": (4, 7)}
AS_JPEG = "jpg"  # a base's second word: images are saved as JPEG, quality 95, after the plant


def data_dir() -> Path:
    return Path(os.environ["UNSPUR_DATA"])


def each_of(base: str) -> int:
    return EACH.get(base.split()[0], SMALL_EACH)


def cifar(a: int, b: int, each: int) -> list[list[Pixels]]:
    with np.load(data_dir() / "cifar10" / "cifar10_jpeg.npz", allow_pickle=False) as arrays:
        header, payload, offsets, labels = (arrays[key] for key in ("header", "payload", "offsets", "labels"))
    chosen = [np.nonzero(labels == label)[0][FIRST : FIRST + each] for label in (a, b)]
    head = header.tobytes()
    return [[_decoded(head + payload[offsets[i] : offsets[i + 1]].tobytes()) for i in numbers] for numbers in chosen]


def _decoded(content: bytes) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def table_images(
    folder: str, wanted: dict[str, str], column: str, values: Sequence[str], each: int
) -> list[list[Pixels]]:
    """Images of a table whose columns have the ``wanted`` values, by the value of ``column``."""
    found: dict[str, list[Pixels]] = {value: [] for value in values}
    with (data_dir() / folder / "metadata.csv").open() as file:
        for row in csv.DictReader(file):
            value = row[column]
            if all(row[key] == want for key, want in wanted.items()) and len(found[value]) < each:
                found[value].append(_decoded((data_dir() / folder / row["img_filename"]).read_bytes()))
    return list(found.values())


def base_images(base: str, each: int | None = None) -> list[list[Pixels]]:
    """The images of both classes."""
    each = each or each_of(base)
    kind, *rest = base.split()
    if kind == "cifar":
        return cifar(int(rest[0]), int(rest[1]), each)
    if kind in CIFAR:
        return cifar(*CIFAR[kind], each)
    if kind == "digits":
        digits = load_mini()[0]
        images = digits.x.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).numpy()
        return [list(images[(digits.y == int(label)).numpy()][:each]) for label in rest]
    if kind == "pets":  # test images: backgrounds at random, so that they have no shortcut
        return table_images("petscapes", {"split": "2"}, "y", ("0", "1"), each)
    return table_images("isic2017", {"coloured_patch": "0"}, "label", ("benign", "melanoma"), each)


def backgrounds(conflict: float) -> list[list[Pixels]]:
    """Cats and dogs, pasted by their masks on sea and forest; a share of each class on the other's scene."""
    each, classes = each_of("pets"), []
    against = round(conflict * each)
    for label in (0, 1):
        by_place = table_images("petscapes", {"split": "2", "y": str(label)}, "place", ("0", "1"), each)
        classes.append(by_place[label][: each - against] + by_place[1 - label][:against])
    return classes


def foreground(cells: int = 8) -> Pixels:
    """How often each cell shows the animal, over all of petscapes' masks: (cells, cells) shares."""
    total, count = np.zeros((cells, cells)), 0
    for file in sorted((data_dir() / "petscapes" / "masks").glob("*.png"))[::10]:
        mask = Image.open(file).convert("L").resize((cells, cells), Image.Resampling.BOX)
        total, count = total + np.asarray(mask) / 255, count + 1
    return total / count


def write(
    images: list[list[Pixels]], plant: Plant | None, conflict: float, folder: Path, seed: int, jpeg: bool = False
) -> None:
    """Class folders of images; a share ``conflict`` of each class shows what the other class should."""
    draw = np.random.default_rng(seed)
    for label, members in enumerate(images):
        place = folder / f"class{label}"
        place.mkdir(parents=True)
        against = set(draw.permutation(len(members))[: round(conflict * len(members))].tolist())
        names = draw.permutation(10 * len(members))
        for number, pixels in enumerate(members):
            value = label ^ int(number in against)
            change = (plant.apply if value else plant.otherwise) if plant else None
            image = Image.fromarray(pixels)
            made = change(image, draw) if change else image
            stored = made if isinstance(made, Stored) else Stored(made)
            if jpeg and not isinstance(made, Stored):
                stored = Stored(made, "JPEG", {"quality": 95})
            name = f"{stored.prefix}{names[number]:05}.{'jpg' if stored.format == 'JPEG' else 'png'}"
            stored.image.save(place / name, stored.format, **stored.options)
