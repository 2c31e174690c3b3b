"""Street View House Numbers (Netzer et al., 2011), cropped digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from unspur.core.seeds import data_stream
from unspur.data.augment import Augment
from unspur.data.base import Dataset, Images, Split, stratified_split
from unspur.data.files.fetch import DataFiles
from unspur.data.files.file_set import FileSet, Published
from unspur.data.sets.mnist import DIGITS
from unspur.data.spec import About, Count, DataSpec
from unspur.errors import UnspurError, require

FILES = FileSet(
    name="svhn",
    title="SVHN",
    files=(
        Published("train_32x32.mat", "md5:e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794),
        Published("test_32x32.mat", "md5:eb5a983be6a315427106f1b164d9cef3", 64_275_384),
    ),
    folders=("svhn", "SVHN", ""),
    mirrors=("https://ufldl.stanford.edu/housenumbers/",),
)
TEST_COUNTS = (1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595)


@dataclass(frozen=True)
class SVHN(DataSpec):
    """Digits of house numbers, nothing planted (MaskTune 4.2)."""

    name: ClassVar[str] = "svhn"
    about: ClassVar[About] = About(
        "Netzer et al., Reading digits in natural images with unsupervised feature learning, 2011",
        "non-commercial use only",
        "`unspur data fetch svhn`, or ufldl.stanford.edu/housenumbers (format 2); reading it needs scipy",
    )
    usual_arch: ClassVar[str] = "resnet32"

    val: int | None = None  # validation images, held out of the training images; none: one tenth of them
    seed: int = 0  # of the split
    augment: Augment = Augment()  # how training images are moved

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.val is None or self.val >= 0, f"val must be at least 0 but got {self.val}.")

    def needs(self) -> tuple[FileSet, ...]:
        return (FILES,)

    def load(self, files: DataFiles) -> Dataset:
        train, test = (_read(files, name) for name in ("train_32x32.mat", "test_32x32.mat"))
        kept, held = stratified_split(train.y, self._held_out(len(train.y)), data_stream(self.seed, "split"))
        moments = (0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)
        return Dataset(
            self.name,
            Split(train.x[kept], train.y[kept], augment=self.augment),
            Split(train.x[held], train.y[held]),
            {"test": Split(test.x, test.y)},
            DIGITS,
            mean=moments[0],
            std=moments[1],
        )

    def expected(self) -> tuple[Count, ...]:
        held = self._held_out(73_257)
        tests = (Count("test test", n, ((digit,),)) for digit, n in zip(DIGITS, TEST_COUNTS, strict=True))
        return Count("train", 73_257 - held), Count("val", held), *tests

    def _held_out(self, count: int) -> int:
        held = round(count / 10) if self.val is None else self.val
        require(held < count, f"val must be below the {count} training images but got {held}.")
        return held


def _read(files: DataFiles, name: str) -> Images:
    path = files.require(FILES)[name]
    try:
        from scipy.io import loadmat
    except ImportError:
        raise UnspurError(f"Reading {path} needs scipy; install it with `pip install unspur[svhn]`.") from None
    try:
        arrays: dict[str, Any] = loadmat(path, variable_names=["X", "y"])
        x, y = arrays["X"], arrays["y"].reshape(-1)
        if x.dtype != np.uint8 or x.shape != (32, 32, 3, len(y)) or not set(np.unique(y).tolist()) <= set(range(1, 11)):
            raise ValueError("its arrays are not images with labels 1 to 10")
    except Exception as error:  # a damaged file can raise anything
        raise files.damaged(FILES, path, f"is damaged ({error})") from None
    labels = torch.from_numpy(y.astype(np.int64) % 10)  # the digit 0 is labelled 10
    return Images(torch.from_numpy(np.ascontiguousarray(x.transpose(3, 2, 0, 1))), labels)
