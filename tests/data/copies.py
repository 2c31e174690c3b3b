"""Tiny copies of published sets of images, in exactly the published layouts. Each says which listing it imitates."""

import hashlib
import itertools
from pathlib import Path

import numpy as np
from PIL import Image

from data.photos import photo
from unspur.data.files.file_set import Published

BIRDS = ("001.Black_footed_Albatross", "002.Laysan_Albatross", "010.Red_winged_Blackbird")


def group_colour(*numbers: int):
    """A colour that tells a group: its numbers, 40 apart, as red, green and blue."""
    return tuple(40 * number + 20 for number in (*numbers, 0, 0)[:3])


def waterbirds(root: Path, each=((3, 2, 1, 3), (2, 2, 2, 2), (2, 1, 2, 3))) -> Path:
    """waterbird_complete95_forest2water2, as kohpangwei/group_DRO reads it (data/confounder_dataset.py): metadata.csv
    with img_id,img_filename,y,split,place,place_filename and images in CUB's folders. ``each``: images of each group
    (land bird on land, on water, water bird on land, on water) in train, val and test."""
    lines, number = ["img_id,img_filename,y,split,place,place_filename"], 0
    for split, counts in enumerate(each):
        for (y, place), count in zip(itertools.product((0, 1), repeat=2), counts, strict=True):
            for _ in range(count):
                number += 1
                name = f"{BIRDS[number % 3]}/{BIRDS[number % 3][4:]}_{number:04d}_{number * 7}.jpg"
                photo(root / name, group_colour(y, place, split), quality=95)
                lines.append(f"{number},{name},{y},{split},{place},/b/bamboo_forest/{number:08d}.jpg")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return root


def petscapes(root: Path, each=((3, 1, 1, 4), (1, 1, 1, 1), (2, 1, 1, 2))) -> Path:
    """Petscapes: metadata.csv with Waterbirds' columns and a source, images/NUMBER.jpg and masks/NUMBER.png in black
    and white. ``each``: images of each group (cat at sea, in the forest, dog at sea, in the forest) in train, val and
    test. The mask of image n is white in its first n + 1 rows of pixels."""
    lines, number = ["img_id,img_filename,y,split,place,place_filename,source"], 0
    for split, counts in enumerate(each):
        for (y, place), count in zip(itertools.product((0, 1), repeat=2), counts, strict=True):
            for _ in range(count):
                photo(root / f"images/{number:05d}.jpg", group_colour(y, place, split), size=(32, 32), quality=95)
                mask = Image.new("1", (32, 32))
                mask.paste(1, (0, 0, 32, number + 1))
                (root / "masks").mkdir(exist_ok=True)
                mask.save(root / f"masks/{number:05d}.png")
                lines.append(f"{number},images/{number:05d}.jpg,{y},{split},{place},sea,Bengal_{number}")
                number += 1
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return root


def isic(root: Path) -> Path:
    """The lesions of ISIC 2017: metadata.csv with img_filename,label,split,coloured_patch,age,sex and images. In each
    split two benign lesions without a patch, one with one, and five melanomas: black at the upper, lower, left or right
    edge, or nowhere."""
    lines = ["img_filename,label,split,coloured_patch,age,sex"]
    sides = {
        "up": (0, 0, 64, 20),
        "down": (0, 44, 64, 64),
        "left": (0, 0, 20, 64),
        "right": (44, 0, 64, 64),
        "no": None,
    }
    for split in ("train", "val", "test"):
        kinds = [
            ("benign", 0, "no"),
            ("benign", 0, "no"),
            ("benign", 1, "no"),
            *(("melanoma", 0, side) for side in sides),
        ]
        for number, (kind, patch, side) in enumerate(kinds):
            image = Image.new("RGB", (64, 64), (200, 150 + number, 130))
            if box := sides[side]:
                image.paste((0, 0, 0), box)
            name = f"images/ISIC_{split}_{number}.png"
            (root / "images").mkdir(parents=True, exist_ok=True)
            image.save(root / name)
            lines.append(f"{name},{kind},{split},{patch},unknown,female")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return root


def corrected_waterbirds(root: Path) -> Path:
    """MaskTune's corrected release, as aliasgharkhani/Masktune reads it (src/datasets/waterbirds.py, last commit):
    metadata.csv as the original's, and images/SPLIT/LABEL/FILE. One label differs from the table's: it is corrected."""
    lines = ["img_id,img_filename,y,split,place,place_filename"]
    number = 0
    for split, name in enumerate(("train", "val", "test")):
        for y, place in itertools.product((0, 1), repeat=2):
            number += 1
            file = f"Bird_{number:04d}.jpg"
            corrected = 1 if number == 1 else y
            photo(root / "images" / name / str(corrected) / file, group_colour(corrected, place, split), quality=95)
            lines.append(f"{number},{BIRDS[0]}/{file},{y},{split},{place},/o/ocean/{number:08d}.jpg")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return root


ATTRIBUTES = [
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald", "Bangs", "Big_Lips", "Big_Nose",
    "Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair", "Bushy_Eyebrows", "Chubby", "Double_Chin", "Eyeglasses",
    "Goatee", "Gray_Hair", "Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open", "Mustache",
    "Narrow_Eyes", "No_Beard", "Oval_Face", "Pale_Skin", "Pointy_Nose", "Receding_Hairline", "Rosy_Cheeks",
    "Sideburns", "Smiling", "Straight_Hair", "Wavy_Hair", "Wearing_Earrings", "Wearing_Hat", "Wearing_Lipstick",
    "Wearing_Necklace", "Wearing_Necktie", "Young",
]  # fmt: skip


def celeba(root: Path, *, kaggle: bool) -> Path:
    """img_align_celeba with list_attr_celeba and list_eval_partition: as .txt as its authors publish them (a count, a
    header without a name for the files, columns set apart by spaces; no header in the partition, as torchvision reads
    them), or as .csv with image_id and partition, as on Kaggle (jessicali9530/celeba-dataset), where the folder is
    nested in one of its own name. One image of each group in each split."""
    rows, partition, number = [], [], 0
    images = root / "img_align_celeba" / "img_align_celeba" if kaggle else root / "img_align_celeba"
    for split, blond, male in itertools.product(range(3), (-1, 1), (-1, 1)):
        number += 1
        name = f"{number:06d}.jpg"
        colour = group_colour((blond + 1) // 2, (male + 1) // 2, split)
        photo(images / name, colour, size=(178 // 8, 218 // 8), quality=95)
        values = {"Blond_Hair": blond, "Male": male}
        rows.append((name, [values.get(attribute, -1) for attribute in ATTRIBUTES]))
        partition.append((name, split))
    if kaggle:
        lines = [",".join(["image_id", *ATTRIBUTES]), *(",".join([name, *map(str, row)]) for name, row in rows)]
        (root / "list_attr_celeba.csv").write_text("\n".join(lines) + "\n")
        lines = ["image_id,partition", *(f"{name},{split}" for name, split in partition)]
        (root / "list_eval_partition.csv").write_text("\n".join(lines) + "\n")
    else:
        lines = [str(number), " ".join(ATTRIBUTES) + " "]
        lines += [" ".join([name, *(f"{value:2d}" for value in row)]) for name, row in rows]
        (root / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
        (root / "list_eval_partition.txt").write_text("".join(f"{name} {split}\n" for name, split in partition))
    return root


def bffhq(root: Path) -> Path:
    """bffhq as kakaoenterprise/Learning-Debiased-Disentangled unpacks it (README.md, data/util.py): 0.5pct/align/AGE/*,
    0.5pct/conflict/AGE/*, valid/*, test/*, files called NUMBER_AGE_GENDER.png."""
    number = itertools.count(1)
    for age, gender in itertools.product((0, 1), repeat=2):
        side = "align" if age == gender else "conflict"
        for _ in range(3 if side == "align" else 1):
            photo(root / "0.5pct" / side / str(age) / f"{next(number)}_{age}_{gender}.png", group_colour(age, gender))
        for folder in ("valid", "test"):
            photo(root / folder / f"{next(number)}_{age}_{gender}.png", group_colour(age, gender))
    return root


def urbancars(root: Path) -> Path:
    """urbancars as facebookresearch/Whac-A-Mole writes it (create_datasets/urbancars/gen_urbancars.py): for each image
    000.jpg two masks, 000_mask.png and 000_co_occur_obj_mask.png, in a folder for each group."""
    shares = {"train": "bg-0.95_co_occur_obj-0.95", "val": "bg-0.5_co_occur_obj-0.5", "test": "bg-0.5_co_occur_obj-0.5"}
    areas = ("urban", "country")
    for split, share in shares.items():
        for car, background, thing in itertools.product((0, 1), repeat=3):
            group = f"obj-{areas[car]}_bg-{areas[background]}_co_occur_obj-{areas[thing]}"
            folder = root / share / split / group
            for number in range(1 + (split == "train") * ((car == background) + (car == thing))):
                photo(folder / f"{number:03d}.jpg", group_colour(car, background, thing), quality=95)
                for mask in ("mask", "co_occur_obj_mask"):
                    photo(folder / f"{number:03d}_{mask}.png", (255, 255, 255))
    return root


def spawrious(root: Path, each=6) -> Path:
    """spawrious224 as aengusl/spawrious unpacks it (spawrious/torch.py): HALF/PLACE/BREED/*.png, halves 0 and 1."""
    places = ("snow", "jungle", "desert", "dirt", "mountain", "beach")
    for half, (p, place), (b, breed) in itertools.product(
        (0, 1), enumerate(places), enumerate(("bulldog", "corgi", "dachshund", "labrador"))
    ):
        for number in range(each):
            photo(root / str(half) / place / breed / f"img_{place}_{breed}_{number}.png", group_colour(b, p, half))
    return root


IN9_FOLDERS = (
    "00_dog", "01_bird", "02_wheeled vehicle", "03_reptile", "04_carnivore", "05_insect", "06_musical instrument",
    "07_primate", "08_fish",
)  # fmt: skip


def in9(root: Path) -> Path:
    """IN-9L's train and val beside the Background Challenge's VARIATION/val in test, as aliasgharkhani/Masktune expects
    them (src/datasets/in9l.py); class folders as MadryLab/backgrounds_challenge releases them, spaces included."""
    variations = ("original", "mixed_same", "mixed_rand", "only_fg", "no_fg")
    folders = ["train", "val", *(f"test/{name}/val" for name in variations)]
    for part, folder in enumerate(folders):
        for number, name in enumerate(IN9_FOLDERS):
            photo(root / folder / name / f"n0208_{part}.JPEG", group_colour(number % 5, number // 5, part), quality=95)
    return root


def cats_vs_dogs(root: Path, *, kaggle: bool, each=10) -> Path:
    """Kaggle's dogs-vs-cats train.zip (train/cat.0.jpg, ..., beside test1), or Microsoft's PetImages/Cat/0.jpg, ...
    with a Thumbs.db in each folder."""
    for label, (number, animal) in itertools.product(range(each), enumerate(("cat", "dog"))):
        if kaggle:
            photo(root / "train" / f"{animal}.{label}.jpg", group_colour(number), quality=95)
            photo(root / "test1" / f"{label}.jpg")
        else:
            photo(root / "PetImages" / animal.capitalize() / f"{label}.jpg", group_colour(number), quality=95)
            (root / "PetImages" / animal.capitalize() / "Thumbs.db").write_bytes(b"\xd0\xcf")
    return root


def imagenet(root: Path, each=10) -> Path:
    """ILSVRC2012 with a folder for each class in train and in val, as torchvision.datasets.ImageNet leaves it."""
    for number, wnid in enumerate(("n01440764", "n01443537", "n02084071")):
        for image in range(each):
            photo(root / "train" / wnid / f"{wnid}_{image}.JPEG", group_colour(number), quality=95)
        photo(root / "val" / wnid / f"ILSVRC2012_val_{number:08d}.JPEG", group_colour(number), quality=95)
    return root


def svhn(root: Path) -> tuple[Published, ...]:
    """Cropped digits as ufldl.stanford.edu/housenumbers describes format 2: X (32, 32, 3, n) and y (n, 1), in which the
    digit 0 has the label 10. Returns the files as if these had been published."""
    from scipy import io

    files = []
    root.mkdir(parents=True, exist_ok=True)
    for name, count in (("train_32x32.mat", 40), ("test_32x32.mat", 20)):
        y = (np.arange(count) % 10 + 1).astype(np.uint8)
        x = np.zeros((32, 32, 3, count), np.uint8)
        x[4, 7, 2] = y  # the blue of row 4, column 7 tells the label
        io.savemat(root / name, {"X": x, "y": y[:, None]})
        content = (root / name).read_bytes()
        files.append(Published(name, "md5:" + hashlib.md5(content).hexdigest(), len(content)))
    return tuple(files)
