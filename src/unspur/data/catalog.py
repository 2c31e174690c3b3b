"""Every data set by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unspur.core.options import make
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.bffhq import BFFHQ
from unspur.data.sets.cats_vs_dogs import CatsVsDogs
from unspur.data.sets.celeba import CelebA
from unspur.data.sets.cifar import CIFAR10, CIFAR100, MNISTCIFAR, CorruptedCIFAR10
from unspur.data.sets.folder import Folder
from unspur.data.sets.imagenet import ImageNet
from unspur.data.sets.in9 import IN9
from unspur.data.sets.isic import ISIC
from unspur.data.sets.mnist import MNIST, FashionMNIST
from unspur.data.sets.petscapes import Petscapes
from unspur.data.sets.planted_mnist import MNISTSC, BiasedMNIST, ColoredMNIST, DoubleMNIST
from unspur.data.sets.spawrious import Spawrious
from unspur.data.sets.svhn import SVHN
from unspur.data.sets.synthetic import MoonStar, Parity
from unspur.data.sets.urbancars import UrbanCars
from unspur.data.sets.waterbirds import Waterbirds
from unspur.data.spec import DataSpec
from unspur.errors import DataMissing, unknown

DATASETS: dict[str, type[DataSpec]] = {
    spec.name: spec
    for spec in (
        BiasedMNIST,
        MNISTSC,
        ColoredMNIST,
        DoubleMNIST,
        MNISTCIFAR,
        CorruptedCIFAR10,
        Parity,
        MoonStar,
        MNIST,
        FashionMNIST,
        CIFAR10,
        CIFAR100,
        SVHN,
        CatsVsDogs,
        ImageNet,
        Waterbirds,
        CelebA,
        BFFHQ,
        UrbanCars,
        Spawrious,
        IN9,
        Petscapes,
        ISIC,
        Folder,
    )
}


def dataset_named(name: str) -> type[DataSpec]:
    """The data set of that name."""
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    return DATASETS[name]


def load(name: str, data_dir: Path | str | None = None, **options: Any) -> Dataset:
    """Load a data set with its options; nothing is downloaded.

    >>> data = load("biased_mnist", base="mini", conflict_count=100)
    >>> len(data.train), len(data.val), sorted(data.tests)
    (9167, 833, ['biased', 'original'])
    """
    spec = make(dataset_named(name), name, options)
    return spec.load(DataFiles(Path(data_dir) if data_dir is not None else None))


def fetch(name: str, data_dir: Path | str | None = None) -> list[Path]:
    """Verify the published files that a data set is made of, download what is missing, and return where they are.

    What cannot be downloaded is an error that says where to get it.
    """
    files = DataFiles(Path(data_dir) if data_dir is not None else None)
    spec = dataset_named(name)()
    found = spec.found(files)
    if found and all(part.folder is not None and part.state == "whole" for part in found):
        return [part.folder for part in found if part.folder is not None]
    if found and not spec.needs():
        raise DataMissing(next(part.reason or "" for part in found if part.state != "whole"))
    return [path for wanted in spec.needs() for path in files.fetch(wanted).values()]
