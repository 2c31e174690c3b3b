"""CIFAR-10 and CIFAR-100 as they are, and CIFAR-10 with a shortcut: corruptions, or a digit above each image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import unspur.data.sets.cifar_files as cifar_files
from unspur.core.options import added
from unspur.core.seeds import data_stream
from unspur.data.augment import Augment
from unspur.data.base import Dataset, Images, Split, stratified_split
from unspur.data.files.fetch import DataFiles
from unspur.data.files.file_set import FileSet
from unspur.data.sets.cifar_jpeg import TITLE, found_jpeg, read_jpeg
from unspur.data.sets.mnist import DIGITS, MNIST, MNIST_ABOUT
from unspur.data.shortcuts.corruptions import CORRUPTIONS
from unspur.data.shortcuts.drawn import Companion, Shortcut, to_rgb
from unspur.data.shortcuts.natural import Corruption
from unspur.data.shortcuts.planted import Planted
from unspur.data.spec import About, Count, DataSpec, Found
from unspur.errors import require

KRIZHEVSKY = "Krizhevsky, Learning multiple layers of features from tiny images, 2009"
NO_LICENCE = "none stated; the authors ask to be cited"
CIFAR10_ABOUT = About(KRIZHEVSKY, NO_LICENCE, "`unspur data fetch cifar10`, or cs.toronto.edu/~kriz/cifar.html")
OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
HUNDRED = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest",
    "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard",
    "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid",
    "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine", "possum",
    "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper",
    "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone",
    "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf",
    "woman", "worm",
)  # fmt: skip


@dataclass(frozen=True)
class CIFARBased(DataSpec):
    """What all sets of CIFAR's images have in common."""

    usual_arch: ClassVar[str] = "resnet18"

    val: int | None = None  # validation images, held out of the training images; none: one tenth of them
    seed: int = 0  # of the split and of everything that is planted
    augment: Augment = Augment()  # how training images are moved
    images: int | None = added(None)  # training and validation images to use, classes in their shares; none: all

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.val is None or self.val >= 0, f"val must be at least 0 but got {self.val}.")
        require(self.images is None or self.images >= 1, f"images must be at least 1 but got {self.images}.")

    def held_out(self, count: int) -> int:
        """How many of ``count`` training images are for validation."""
        held = round(count / 10) if self.val is None else self.val
        require(held < count, f"val must be below the {count} training images but got {held}.")
        return held

    def parts(self, train: Images, test: Images) -> dict[str, Images]:
        """Training, validation and test images."""
        if self.images is not None:
            train = self._some(train, self.images)
        kept, held = stratified_split(train.y, self.held_out(len(train.y)), data_stream(self.seed, "split"))
        return {
            "train": Images(train.x[kept], train.y[kept]),
            "val": Images(train.x[held], train.y[held]),
            "test": test,
        }

    def _some(self, whole: Images, count: int) -> Images:
        require(count <= len(whole.y), f"images must be at most the {len(whole.y)} training images but got {count}.")
        kept, _ = stratified_split(whole.y, len(whole.y) - count, data_stream(self.seed, "images"))
        return Images(whole.x[kept], whole.y[kept])

    def counts(self, classes: tuple[str, ...]) -> tuple[Count, ...]:
        """The published numbers: 50,000 training and 10,000 test images, equally many of each class."""
        used = self.images or 50_000
        held = self.held_out(used)
        each = 10_000 // len(classes)
        return (
            Count("train", used - held),
            Count("val", held),
            *(Count("test test", each, ((name,),)) for name in classes),
        )


@dataclass(frozen=True)
class CIFAR10Based(CIFARBased):
    """What all sets of CIFAR-10's images have in common."""

    cifar: Literal["original", "jpeg"] = "original"  # original; or jpeg, slightly lossy, from cifar10_jpeg.npz

    def needs(self) -> tuple[FileSet, ...]:
        return (cifar_files.CIFAR10.archive,) if self.cifar == "original" else ()

    def found(self, files: DataFiles) -> list[Found]:
        return [cifar_files.CIFAR10.found(files) if self.cifar == "original" else found_jpeg(files)]

    def cifar_parts(self, files: DataFiles) -> dict[str, Images]:
        return self.parts(*(cifar_files.CIFAR10.read(files) if self.cifar == "original" else read_jpeg(files)))

    @property
    def note(self) -> str:
        return TITLE if self.cifar == "jpeg" else ""


MOMENTS = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))  # of CIFAR-10's training pixels


@dataclass(frozen=True)
class CIFAR10(CIFAR10Based):
    """Small photographs of ten kinds of objects, nothing planted."""

    name: ClassVar[str] = "cifar10"
    about: ClassVar[About] = CIFAR10_ABOUT
    usual_arch: ClassVar[str] = "resnet32"

    def load(self, files: DataFiles) -> Dataset:
        return _plain(self.name, self.cifar_parts(files), OBJECTS, MOMENTS, self.augment, self.note)

    def expected(self) -> tuple[Count, ...]:
        return self.counts(OBJECTS)


@dataclass(frozen=True)
class CIFAR100(CIFARBased):
    """Small photographs of a hundred kinds of objects, nothing planted."""

    name: ClassVar[str] = "cifar100"
    about: ClassVar[About] = About(
        KRIZHEVSKY, NO_LICENCE, "`unspur data fetch cifar100`, or cs.toronto.edu/~kriz/cifar.html"
    )

    def needs(self) -> tuple[FileSet, ...]:
        return (cifar_files.CIFAR100.archive,)

    def found(self, files: DataFiles) -> list[Found]:
        return [cifar_files.CIFAR100.found(files)]

    def load(self, files: DataFiles) -> Dataset:
        moments = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)
        return _plain(self.name, self.parts(*cifar_files.CIFAR100.read(files)), HUNDRED, moments, self.augment, "")

    def expected(self) -> tuple[Count, ...]:
        return self.counts(HUNDRED)


def _plain(
    name: str,
    parts: dict[str, Images],
    classes: tuple[str, ...],
    moments: tuple[tuple[float, ...], tuple[float, ...]],
    augment: Augment,
    note: str,
) -> Dataset:
    train, val, test = (Split(part.x, part.y) for part in parts.values())
    train = Split(train.x, train.y, augment=augment)
    return Dataset(name, train, val, {"test": test}, classes, mean=moments[0], std=moments[1], note=note)


@dataclass(frozen=True)
class PlantedCIFAR10(Planted, CIFAR10Based):
    """What the sets with a planted shortcut have in common."""

    usual_conflict: ClassVar[float] = 0.1

    def split(self, part: str, parts: dict[str, Images], attribute: str, shortcut: Shortcut) -> Split:
        """The images of a part with the shortcut: mostly the value of the class; in tests, independent of the class."""
        x, y = parts[part]
        if part == "test":
            values = self.independent(part, y, 10)
        else:
            values = self.like_training(part, y, 10, training=len(parts["train"].y))
        augment = self.augment if part == "train" else None
        return Split(self.planted(part, shortcut, x, values), y, {attribute: values}, augment=augment)


@dataclass(frozen=True)
class CorruptedCIFAR10(PlantedCIFAR10):
    """CIFAR-10 with ten corruptions at severity 5, one for each class (DCWP E.1, large-LR 4.1).

    Class k goes with corruption k, both in DCWP's order; frost is a generated texture. DCWP's counts of aligned and
    conflicting training samples are conflict_count=228 with val=4940, 442 with 5031, 887 with 4968 and 2242 with 4938.
    Large-LR: val=0.
    """

    name: ClassVar[str] = "corrupted_cifar10"
    about: ClassVar[About] = About(
        "DCWP, appendix E.1; corruptions: Hendrycks and Dietterich, arXiv:1903.12261, frost from a generated texture; "
        f"CIFAR-10: {KRIZHEVSKY}",
        NO_LICENCE,
        CIFAR10_ABOUT.get,
    )

    @property
    def shortcuts(self) -> dict[str, Shortcut]:
        return {"corruption": Corruption()}

    def load(self, files: DataFiles) -> Dataset:
        parts = self.cifar_parts(files)
        train, val, test = (self.split(part, parts, "corruption", self.shortcuts["corruption"]) for part in parts)
        values = {"corruption": tuple(CORRUPTIONS)}
        return Dataset(self.name, train, val, {"unbiased": test}, OBJECTS, values, *MOMENTS, self.note)


@dataclass(frozen=True)
class MNISTCIFAR(PlantedCIFAR10):
    """Dominoes: an object of CIFAR-10, which is the class, below a digit that usually agrees (large-LR 4.1).

    Images are 64x32, digits padded to 32x32. A test image's digit is one of MNIST's test digits.
    """

    name: ClassVar[str] = "mnist_cifar"
    about: ClassVar[About] = About(
        f"Large learning rates, section 4.1; MNIST: {MNIST_ABOUT.citation}; CIFAR-10: {KRIZHEVSKY}",
        f"MNIST: {MNIST_ABOUT.licence}; CIFAR-10: {NO_LICENCE}",
        f"{MNIST_ABOUT.get}; and {CIFAR10_ABOUT.get}",
    )

    base: Literal["mnist", "mini"] = "mnist"  # the digits: mnist, or mini (embedded, needs no download)

    def needs(self) -> tuple[FileSet, ...]:
        return (*self._digits.needs(), *super().needs())

    def found(self, files: DataFiles) -> list[Found]:
        return [*self._digits.found(files), *super().found(files)]

    @property
    def shortcuts(self) -> dict[str, Companion]:
        return {"digit": Companion("above")}

    def load(self, files: DataFiles) -> Dataset:
        parts, digits = self.cifar_parts(files), self._digits.parts(files)

        def split(part: str) -> Split:
            pool = digits.test if part == "test" else digits.train
            above = self.shortcuts["digit"].drawing_from(Images(to_rgb(pool.x), pool.y))
            return self.split(part, parts, "digit", above)

        tests, values = {"unbiased": split("test")}, {"digit": DIGITS}
        return Dataset(self.name, split("train"), split("val"), tests, OBJECTS, values, note=self.note)

    @property
    def _digits(self) -> MNIST:
        return MNIST(base=self.base, size=32, val=0, seed=self.seed)
