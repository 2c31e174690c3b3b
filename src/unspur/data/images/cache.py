"""Decode once: images as rows of a memory-mapped file in the user's cache, found again by path, size and time.

A folder of the cache belongs to one folder of images, one image size and one way to fit:

    pixels.bin   one image a row, (3, size, size) bytes
    rows.bin     32 bytes a row: a hash of the file's path, size and modification time, then one of its content
    about.json   what it holds, for people

A row counts once it is in rows.bin, which is written after its pixels. So a killed process only leaves rows that do not
count yet, and these are reused next time. Anything here may be deleted: what is missing is decoded again.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray
from torch import Tensor

from unspur.core.files import in_bytes, write_json
from unspur.core.progress import counting
from unspur.data.images.decode import SquareFit
from unspur.data.images.workers import CHUNK, Decoded, Decoders, Task, WriteFailed, cores
from unspur.errors import UnspurError

RECORD = np.dtype([("file", "V16"), ("content", "V16")])
VERSION = 1  # of what decoding does; another version uses another cache
SAVE_SECONDS = 2.0  # how often rows are made to count: the work that a killed process may lose
RELEASE_BYTES = 1 << 28  # mapped pages are given back to the system when they may take this much
FAULT_BYTES = 1 << 16  # what Linux maps at once around a byte that is read


class ImageFile(NamedTuple):
    """A file below a root, as it was when it was listed."""

    name: str  # relative to the root
    size: int
    mtime_ns: int

    @property
    def identity(self) -> bytes:
        text = f"{self.name}\0{self.size}\0{self.mtime_ns}"
        return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Filled(NamedTuple):
    """What a cache knows of some files after looking at each."""

    rows: NDArray[np.int64]  # the row of each file; -1 for one that cannot be decoded
    content: NDArray[np.void]  # a hash of each file's content, where it has a row
    problems: dict[int, str]  # what is wrong with each of the others
    decoded: int  # how many were not known before


class Cache:
    """The decoded images below one folder, at one size. Without ``pixels`` it only remembers which can be decoded."""

    def __init__(self, cache_dir: Path, root: Path, size: int, fit: SquareFit, *, pixels: bool = True) -> None:
        self.root, self.size, self.fit, self.pixels = root, size, fit, pixels
        key = repr((VERSION, os.fsencode(root), size, fit, pixels)).encode()
        self.folder = cache_dir / "images" / hashlib.sha256(key).hexdigest()[:16]

    @property
    def row_bytes(self) -> int:
        return 3 * self.size * self.size if self.pixels else 0

    @property
    def pixel_file(self) -> Path:
        return self.folder / "pixels.bin"

    def fill(self, files: Sequence[ImageFile], processes: int | None = None) -> Filled:
        """Decode every one of ``files`` that is not here yet, in parallel, and say where each is."""
        identities = [file.identity for file in files]
        filled = self._find(identities)
        if (filled.rows < 0).any():
            try:
                self._room_for(int((filled.rows < 0).sum()))
                # If two processes want the same images, one decodes, and the other waits and finds them.
                with FileLock(self.folder / ".lock"):
                    missing = (self._find(identities).rows < 0).nonzero()[0].tolist()
                    problems = self._decode(files, identities, missing, processes) if missing else {}
            except OSError as error:
                raise UnspurError(
                    f"Cannot write to the image cache {self.folder} ({error.strerror}); make room there, or set "
                    "UNSPUR_CACHE to another folder."
                ) from None
            filled = self._find(identities)._replace(problems=problems, decoded=len(missing) - len(problems))
        return filled

    def _find(self, identities: Sequence[bytes]) -> Filled:
        records = self._records()
        row_of = {identity: row for row, identity in enumerate(records["file"].tolist())}
        rows = np.array([row_of.get(identity, -1) for identity in identities], dtype=np.int64)
        content = records["content"][rows] if len(records) else np.zeros(len(identities), RECORD["content"])
        return Filled(rows, content, {}, 0)

    def _records(self) -> NDArray[np.void]:
        """The rows that count; none beyond the end of the pixels, in case somebody deleted those."""
        path = self.folder / "rows.bin"
        data = path.read_bytes() if path.exists() else b""
        records = np.frombuffer(data[: len(data) // RECORD.itemsize * RECORD.itemsize], RECORD)
        if not self.pixels:
            return records
        return records[: self.pixel_file.stat().st_size // self.row_bytes if self.pixel_file.exists() else 0]

    def _room_for(self, count: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        needed, free = count * self.row_bytes, shutil.disk_usage(self.folder).free
        if needed > free:
            raise UnspurError(
                f"{count:,} images of {self.size}x{self.size} pixels need {in_bytes(needed)} in {self.folder}, "
                f"where {in_bytes(free)} are free; lower data.size, set UNSPUR_CACHE to a folder on a larger disk, "
                "or decode again each time with data.stream=true."
            )

    def _decode(
        self, files: Sequence[ImageFile], identities: Sequence[bytes], missing: Sequence[int], processes: int | None
    ) -> dict[int, str]:
        """Give each of the ``missing`` files a row; return what is wrong with those that cannot be decoded."""
        rows = self._free_rows(len(missing))
        note = {"root": str(self.root), "size": self.size, "fit": self.fit, "pixels": self.pixels}
        write_json(self.folder / "about.json", note)
        chunks = [range(begin, min(begin + CHUNK, len(missing))) for begin in range(0, len(missing), CHUNK)]
        tasks = [
            Task(
                tuple(os.path.join(self.root, files[missing[i]].name) for i in chunk),
                self.size,
                self.fit,
                str(self.pixel_file) if self.pixels else None,
                tuple(rows[i] for i in chunk),
            )
            for chunk in chunks
        ]
        count = min(processes or cores(), len(tasks))
        problems: dict[int, str] = {}
        with Decoders(count) as decoders, self._saving() as save, counting("decoding images", len(missing)) as advance:
            for chunk, results in zip(chunks, decoders.run(tasks, ahead=2 * count), strict=True):
                for i, result in zip(chunk, results, strict=True):
                    if isinstance(result, WriteFailed):
                        raise OSError(*result)
                    if isinstance(result, Decoded):
                        save(rows[i], identities[missing[i]] + result.digest)
                    else:
                        problems[missing[i]] = result
                advance(len(chunk))
        return problems

    def _free_rows(self, count: int) -> list[int]:
        """Rows that no file has yet, first those that an earlier decoding left unused; the files grow to hold them."""
        records = self._records()
        unused = (records["file"] == np.zeros((), RECORD["file"])).nonzero()[0][:count].tolist()
        total = len(records) + count - len(unused)
        with open(self.folder / "rows.bin", "ab") as file:
            file.truncate(len(records) * RECORD.itemsize)
            file.truncate(total * RECORD.itemsize)
        if self.pixels:
            with open(self.pixel_file, "ab") as file:
                file.truncate(total * self.row_bytes)
        return [*unused, *range(len(records), total)]

    @contextlib.contextmanager
    def _saving(self) -> Iterator[Callable[[int, bytes], None]]:
        """Yield a function that makes a row count; this happens a little later, once its pixels are on the disk."""
        due: list[tuple[int, bytes]] = []
        saved = time.monotonic()

        def flush() -> None:
            nonlocal saved
            if self.pixels:
                with open(self.pixel_file, "rb") as pixels:
                    os.fsync(pixels.fileno())
            with open(self.folder / "rows.bin", "r+b") as file:
                for row, record in due:
                    file.seek(row * RECORD.itemsize)
                    file.write(record)
            due.clear()
            saved = time.monotonic()

        def save(row: int, record: bytes) -> None:
            due.append((row, record))
            if time.monotonic() - saved > SAVE_SECONDS:
                flush()

        try:
            yield save
        finally:
            flush()


class _Mapping:
    """A memory-mapped file of pixels; only recently read parts take memory, and the file may be deleted meanwhile."""

    def __init__(self, path: Path, size: int) -> None:
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        row = 3 * size * size
        count = len(self._map) // row
        self.pixels = torch.frombuffer(self._map, dtype=torch.uint8, count=count * row).view(count, 3, size, size)
        self._mapped = 0

    def take(self, rows: Tensor) -> Tensor:
        images = self.pixels.index_select(0, rows)
        self._mapped += images.numel() + FAULT_BYTES * len(rows)
        if min(self._mapped, len(self._map)) > RELEASE_BYTES and hasattr(mmap, "MADV_DONTNEED"):
            # The system keeps the pages as long as it has room, but they no longer count as this process's memory.
            self._map.madvise(mmap.MADV_DONTNEED)
            self._mapped = 0
        return images


class MappedImages:
    """Images of a cache, by index: a source for a Split that costs no memory and no decoding."""

    def __init__(self, mapping: _Mapping, rows: Tensor) -> None:
        self._mapping, self._rows = mapping, rows

    @classmethod
    def of(cls, cache: Cache, rows: NDArray[np.int64]) -> MappedImages:
        """The images in ``rows`` of ``cache``, in that order."""
        return cls(_Mapping(cache.pixel_file, cache.size), torch.from_numpy(rows))

    @property
    def shape(self) -> torch.Size:
        return torch.Size([len(self._rows), *self._mapping.pixels.shape[1:]])

    @property
    def dtype(self) -> torch.dtype:
        return torch.uint8

    def __getitem__(self, index: Tensor, /) -> Tensor:
        return self._mapping.take(self._rows[index])

    def subset(self, index: Tensor, /) -> MappedImages:
        return MappedImages(self._mapping, self._rows[index])

    def reading(self, order: Sequence[Tensor], /) -> Iterator[Tensor]:
        return (self[index] for index in order)
