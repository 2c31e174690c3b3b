"""CIFAR-10 and CIFAR-100 from their published files: binary or python batches, unpacked or in their archive."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from unspur.data.base import Images
from unspur.data.files.fetch import DataFiles
from unspur.data.files.file_set import FileSet, Published
from unspur.data.files.pickles import PickledArray, read_pickle
from unspur.data.spec import Found, found_files
from unspur.errors import DataMissing, UnspurError

PIXELS = 3 * 32 * 32
LARGEST = 1 << 28  # bytes of a batch; a larger one in an archive is a trap
TORONTO = "https://www.cs.toronto.edu/~kriz/"


Batch = tuple[NDArray[np.uint8], NDArray[np.uint8]]  # images (n, 3072), labels (n,)


@dataclass(frozen=True)
class Form:
    """One of the forms in which a set was published."""

    files: FileSet
    train: tuple[str, ...]
    test: tuple[str, ...]
    parse: Callable[[bytes, Path], Batch]
    inside: str = ""  # the folder in the archive that ``files`` is; empty: the batches lie unpacked

    def read(self, files: DataFiles) -> tuple[Images, Images]:
        batches = self._unpack(files) if self.inside else {name: files.read(self.files, name) for name in self._names}
        origin = next(iter(files.require(self.files).values()))

        def join(names: Sequence[str]) -> Images:
            parts = [
                self.parse(batches[name], origin if self.inside else files.require(self.files)[name]) for name in names
            ]
            x, y = (np.concatenate(column) for column in zip(*parts, strict=True))
            return Images(torch.from_numpy(x.reshape(-1, 3, 32, 32)), torch.from_numpy(y.astype(np.int64)))

        return join(self.train), join(self.test)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.train + self.test

    def _unpack(self, files: DataFiles) -> dict[str, bytes]:
        """The batches from the archive, in memory: nothing is written, whatever paths its members have."""
        archive = self.files.files[0].name
        content = files.read(self.files, archive)
        wanted, batches = {f"{self.inside}/{name}": name for name in self._names}, dict[str, bytes]()
        trouble = "is damaged"
        try:
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
                for member in tar:
                    expected = member.isreg() and member.name in wanted and member.size <= LARGEST
                    file = tar.extractfile(member) if expected else None
                    if file is not None:
                        batches[wanted[member.name]] = file.read()
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            trouble = f"is damaged ({error})"
        lacking = [name for name in self._names if name not in batches]
        if lacking:
            raise files.damaged(self.files, files.require(self.files)[archive], f"{trouble}: it lacks {lacking[0]}")
        return batches


@dataclass(frozen=True)
class Family:
    """A set and its forms, the likelier ones first."""

    title: str
    forms: tuple[Form, ...]
    otherwise: str = ""  # another way out, for the message when the files are missing

    @property
    def archive(self) -> FileSet:
        """What is downloaded: the binary batches, since they need no unpickling."""
        return next(form.files for form in self.forms if form.inside)

    def found(self, files: DataFiles) -> Found:
        form = self._form(files)
        return found_files(form.files, files) if form else Found(self.title, None, "missing", self._missing(files))

    def read(self, files: DataFiles) -> tuple[Images, Images]:
        """Training and test images."""
        form = self._form(files)
        if form is None:
            raise DataMissing(self._missing(files))
        return form.read(files)

    def _form(self, files: DataFiles) -> Form | None:
        return next((form for form in self.forms if files.find(form.files)), None)

    def _missing(self, files: DataFiles) -> str:
        name = self.archive.name
        place = (files.data_dir or Path("DIR")) / name
        told = "" if files.data_dir else ", where --data-dir or UNSPUR_DATA names DIR"
        return (
            f"{self.title} is not on this machine: run `unspur data fetch {name}`, or put {self.archive.files[0].name} "
            f"(or what is in it, or in the python version) into {place}{told}{self.otherwise}."
        )


def _parse_binary(labels: int, label: int) -> Callable[[bytes, Path], Batch]:
    """A reader of rows: ``labels`` bytes of labels, of which the one at ``label`` counts, then the pixels."""

    def parse(content: bytes, path: Path) -> Batch:
        if len(content) % (labels + PIXELS):
            raise UnspurError(f"{path} is not made of whole images of {labels + PIXELS} bytes; get it again.")
        rows = np.frombuffer(content, np.uint8).reshape(-1, labels + PIXELS)
        return rows[:, labels:], rows[:, label]

    return parse


def _parse_python(key: bytes) -> Callable[[bytes, Path], Batch]:
    """A reader of pickled dicts with ``data`` and, under ``key``, the labels."""

    def parse(content: bytes, path: Path) -> Batch:
        batch = read_pickle(content, path)
        data, labels = (batch.get(b"data"), batch.get(key)) if isinstance(batch, dict) else (None, None)
        if (
            not isinstance(data, PickledArray)
            or not isinstance(labels, list)
            or data.array.shape != (len(labels), PIXELS)
            or not all(type(label) is int and 0 <= label < 256 for label in labels)
        ):
            raise UnspurError(f"{path} holds no images with labels; get it again.")
        return data.array, np.array(labels, np.uint8)

    return parse


def family(
    title: str,
    name: str,
    binary: tuple[str, Sequence[Published], Published, Callable[[bytes, Path], Batch]],
    python: tuple[str, Sequence[Published], Published, Callable[[bytes, Path], Batch]],
    otherwise: str = "",
) -> Family:
    """A set published as binary and as python batches: of each the folder, the batches (the last is the test set), the
    archive and how to read one."""
    unpacked, packed = [], []
    for folder, batches, archive, parse in (binary, python):
        names = tuple(batch.name for batch in batches)
        lying = FileSet(name, title, tuple(batches), (f"{name}/{folder}", folder, name), ())
        unpacked.append(Form(lying, names[:-1], names[-1:], parse))
        packed.append(
            Form(FileSet(name, title, (archive,), (name, ""), (TORONTO,)), names[:-1], names[-1:], parse, folder)
        )
    return Family(title, (*unpacked, *packed), otherwise)


CIFAR10 = family(
    "CIFAR-10",
    "cifar10",
    (
        "cifar-10-batches-bin",
        [
            Published(f"{name}.bin", "", 30_730_000)
            for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
        ],
        Published("cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530", 170_052_171),
        _parse_binary(1, 0),
    ),
    (
        "cifar-10-batches-py",
        [
            Published("data_batch_1", "md5:c99cafc152244af753f735de768cd75f", 31_035_704),
            Published("data_batch_2", "md5:d4bba439e000b95fd0a9bffe97cbabec", 31_035_320),
            Published("data_batch_3", "md5:54ebc095f3ab1f0389bbae665268c751", 31_035_999),
            Published("data_batch_4", "md5:634d18415352ddfa80567beed471001a", 31_035_696),
            Published("data_batch_5", "md5:482c414d41f54cd18b22e5b47cb7c3cb", 31_035_623),
            Published("test_batch", "md5:40351d587109b95175f43aff81a1287e", 31_035_526),
        ],
        Published("cifar-10-python.tar.gz", "md5:c58f30108f718f92721af3b95e74349a", 170_498_071),
        _parse_python(b"labels"),
    ),
    "; --set data.cifar=jpeg (cifar='jpeg' in Python) reads a slightly lossy copy, cifar10/cifar10_jpeg.npz",
)
CIFAR100 = family(
    "CIFAR-100",
    "cifar100",
    (
        "cifar-100-binary",
        [
            Published("train.bin", "md5:6172c7755cfe09b2fe270c85cebc1b15", 153_700_000),
            Published("test.bin", "md5:4499cfba6c016c1be1438163640a0898", 30_740_000),
        ],
        Published("cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8", 168_513_733),
        _parse_binary(2, 1),  # the coarse label comes first
    ),
    (
        "cifar-100-python",
        [
            Published("train", "md5:16019d7e3df5f24257cddd939b257f8d", 155_249_918),
            Published("test", "md5:f0ef6b0ae62326f3e7ffdfab6717acfc", 0),
        ],
        Published("cifar-100-python.tar.gz", "md5:eb9058c3a382ffc7106e4002c42a8d85", 169_001_437),
        _parse_python(b"fine_labels"),
    ),
)
