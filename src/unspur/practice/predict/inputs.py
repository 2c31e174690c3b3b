"""The images that a command names: files, folders, patterns, tables, and paths on standard input, one at a time."""

from __future__ import annotations

import glob
import itertools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from unspur.core.files import require_file, user_path
from unspur.data.images.decode import suffixes
from unspur.data.images.listing import Walk, file_inside
from unspur.data.images.table import FILE, cells_of
from unspur.errors import UnspurError, require

STDIN = "-"
TABLES, LISTS = (".csv", ".tsv"), (".txt",)


class Named(NamedTuple):
    """One image that was named."""

    name: str  # as the output calls it
    path: str
    problem: str = ""  # what keeps it from being read, if that is known already


@dataclass(frozen=True)
class Inputs:
    """Everything that a command named, in order; only the names of one folder at a time are held in memory."""

    given: tuple[str, ...]
    column: str = FILE  # of tables
    stdin: BinaryIO | None = None

    def __post_init__(self) -> None:
        """Raise an error for what does not exist or holds no images, before anything is written."""
        require(bool(self.given), "There are no images; name files, folders, a table, or - for paths on stdin.")
        require(self.given.count(STDIN) <= 1, "Standard input (-) can be read once.")
        for text in self.given:
            if text == STDIN:
                require(self.stdin is not None, "There is no standard input to read paths from.")
                continue
            require(bool(text), "A path is empty; name files, folders or a table.")
            path = user_path(text)
            if not os.path.lexists(path):
                found = next(_matches(text), None) if glob.has_magic(text) else None
                require(found is not None, f"{text} does not exist; name files, folders or a table of images.")
            elif path.is_dir():
                first = next(Walk(path.resolve()).names_below(""), None)
                require(first is not None, f"The folder {text} holds no images.")

    def __iter__(self) -> Iterator[Named]:
        for text in self.given:
            yield from self._images(text)

    def count(self) -> int | None:
        """How many images there are; None if only standard input will show."""
        if STDIN in self.given:
            return None
        return sum(self._size(text) for text in self.given)

    def _size(self, text: str) -> int:
        path = user_path(text)
        if path.is_dir():
            return Walk(path.resolve()).count_below("")
        return sum(1 for _ in self._images(text))

    def _images(self, text: str) -> Iterator[Named]:
        path = user_path(text)
        if text == STDIN:
            assert self.stdin is not None
            yield from _lines(self.stdin, "")
        elif not os.path.lexists(path):
            yield from _matches(text)
        elif path.is_dir():
            for name, problem in Walk(path.resolve()).names_below(""):
                yield Named(os.path.join(text, name), str(path / name), problem)
        elif path.suffix.lower() in TABLES:
            inside = file_inside(path.absolute().parent)
            for _, name in cells_of(path, self.column, "--column"):
                found = inside(name) if name else "is an empty cell"
                yield Named(name, str(path.parent / name), found if isinstance(found, str) else "")
        elif path.suffix.lower() in LISTS:
            with _opened(path) as file:
                yield from _lines(file, str(path.parent))
        else:
            yield _single(text, str(path))


def _matches(pattern: str) -> Iterator[Named]:
    """The images and folders that a pattern matches, where the shell did not expand it (such as in quotes)."""
    for name in sorted(glob.iglob(str(user_path(pattern)), recursive=True)):
        if os.path.isdir(name):
            if "**" not in pattern:  # `**` has already matched what is below
                inner = Walk(Path(name).resolve()).names_below("")
                yield from (Named(os.path.join(name, own), os.path.join(name, own), bad) for own, bad in inner)
        elif os.path.splitext(name)[1].lower() in suffixes():
            yield _single(name, name)


def _lines(file: BinaryIO, folder: str) -> Iterator[Named]:
    for line in file:
        if name := os.fsdecode(line.rstrip(b"\r\n")):
            yield _single(name, os.path.join(folder, name))


def _single(name: str, path: str) -> Named:
    """A file that was named by itself; anything else, such as a pipe, is a problem, since it might never end."""
    try:
        problem = "" if stat.S_ISREG(os.stat(path).st_mode) else "is not a file"
    except (OSError, ValueError) as error:
        problem = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    return Named(name.encode("utf-8", "backslashreplace").decode(), path, problem)


def _opened(path: Path) -> BinaryIO:
    require_file(path)
    try:
        return path.open("rb")
    except OSError as error:
        raise UnspurError(f"The list {path} cannot be read ({error.strerror}).") from None


def in_parts(images: Iterator[Named], size: int) -> Iterator[list[Named]]:
    """``images`` in lists of ``size``, the last one perhaps shorter."""
    while part := list(itertools.islice(images, size)):
        yield part
