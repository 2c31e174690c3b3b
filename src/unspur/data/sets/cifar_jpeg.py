"""CIFAR-10 (JPEG): all images of CIFAR-10 as JPEGs of a public mirror, in one file, hence slightly lossy.

``cifar10_jpeg.npz`` holds the bytes that all JPEGs begin with (``header``), what follows in each, end to end
(``payload``, ``offsets``), and ``labels``, ``split`` (0 train, 1 test) and ``classes``. Decoded once into the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray
from PIL import Image

from unspur.core.files import replacing
from unspur.core.progress import counting
from unspur.data.base import Images
from unspur.data.files.fetch import DataFiles
from unspur.data.images.workers import cores
from unspur.data.spec import Found
from unspur.errors import DataMissing, UnspurError

TITLE = "CIFAR-10 (JPEG)"
FILE = "cifar10_jpeg.npz"
PART = 500  # images that a thread decodes at once


def found_jpeg(files: DataFiles) -> Found:
    path = _find(files)
    if path is None:
        return Found(TITLE, None, "missing", _missing(files))
    try:
        with _open(path):
            return Found(TITLE, path.parent)
    except UnspurError as error:
        return Found(TITLE, path.parent, "damaged", str(error))


def read_jpeg(files: DataFiles) -> tuple[Images, Images]:
    """Training and test images."""
    path = _find(files)
    if path is None:
        raise DataMissing(_missing(files))
    with _open(path) as arrays:
        labels, split = torch.from_numpy(arrays["labels"]).long(), torch.from_numpy(arrays["split"])
    x = torch.from_numpy(_decoded(path, files.cache))
    train, test = ((split == part).nonzero().squeeze(1) for part in (0, 1))
    return Images(x[train], labels[train]), Images(x[test], labels[test])


def _find(files: DataFiles) -> Path | None:
    folders = ([files.data_dir / "cifar10", files.data_dir] if files.data_dir else []) + [files.cache / "cifar10"]
    return next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)


def _missing(files: DataFiles) -> str:
    place = (files.data_dir or Path("DIR")) / "cifar10"
    told = "" if files.data_dir else ", where --data-dir or UNSPUR_DATA names DIR"
    return f"{TITLE} is not on this machine: put {FILE} into {place}{told}, or read the original (data.cifar=original)."


@contextlib.contextmanager
def _open(path: Path) -> Iterator[Mapping[str, NDArray[Any]]]:
    """The arrays of the file, each read when asked for."""
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as arrays:
            n = len(arrays["labels"])
            if arrays["offsets"].shape != (n + 1,) or arrays["split"].shape != (n,) or "header" not in arrays:
                raise ValueError("its arrays do not fit together")
            if n == 0 or (np.diff(arrays["offsets"]) <= 0).any() or int(arrays["labels"].max()) > 9:
                raise ValueError("its offsets or labels make no sense")
            yield arrays
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UnspurError(f"{path} cannot be read as {TITLE} ({error}); get it again.") from None


def _decoded(path: Path, cache: Path) -> NDArray[np.uint8]:
    """All images (n, 3, 32, 32), from the cache if this very file was decoded before."""
    facts = path.stat()
    key = hashlib.sha256(f"{path.resolve()} {facts.st_size} {facts.st_mtime_ns}".encode()).hexdigest()[:16]
    stored = cache / "cifar10" / f"jpeg-{key}.bin"
    try:
        stored.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(stored.with_suffix(".lock")):  # two that want it: one decodes, the other waits
            if not stored.exists():
                images = _decode(path)
                with replacing(stored) as temporary:
                    images.tofile(temporary)
        # Memory-mapped, so that nothing is in memory twice; mode c because torch wants writable arrays.
        return np.memmap(stored, np.uint8, mode="c").reshape(-1, 3, 32, 32)
    except OSError as error:
        raise UnspurError(
            f"Cannot write to the cache {stored.parent} ({error.strerror}); make room there, or set UNSPUR_CACHE to "
            "another folder."
        ) from None


def _decode(path: Path) -> NDArray[np.uint8]:
    with _open(path) as arrays:
        header, payload, offsets = arrays["header"].tobytes(), arrays["payload"], arrays["offsets"].tolist()
    images = np.empty((len(offsets) - 1, 32, 32, 3), np.uint8)

    def decode(begin: int) -> None:
        for i in range(begin, min(begin + PART, len(images))):
            content = header + payload[offsets[i] : offsets[i + 1]].tobytes()
            try:
                images[i] = np.asarray(Image.open(io.BytesIO(content)))
            except (OSError, ValueError, SyntaxError) as error:
                raise UnspurError(f"Image {i} of {path} cannot be decoded ({error}); get the file again.") from None

    # Threads are enough: the decoder releases the interpreter lock.
    with ThreadPoolExecutor(cores()) as threads, counting(f"decoding {TITLE}", len(images)) as advance:
        for _ in threads.map(decode, range(0, len(images), PART)):
            advance(PART)
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
