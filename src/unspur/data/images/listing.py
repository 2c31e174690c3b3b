"""The images below a root, with labels, splits and attributes: from a table, or from the names of folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath

from unspur.data.images.cache import ImageFile
from unspur.data.images.decode import suffixes
from unspur.data.images.table import SPLIT, SPLITS, Table, read_table, split_names
from unspur.errors import UnspurError, require


@dataclass(frozen=True)
class Listing:
    """Images below ``root``, one entry each."""

    root: Path  # without links
    files: Sequence[ImageFile]
    labels: Sequence[str]
    splits: Sequence[str] | None = None  # train, val or test; None: not known yet
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    table: Table | None = None  # that the entries come from, in the same order
    notes: tuple[str, ...] = ()  # sentences on what was left out

    def __len__(self) -> int:
        return len(self.files)

    def place(self, number: int) -> str:
        """What to call an entry: its file, and its row if it has one."""
        name = self.files[number].name
        return f"{name} (row {self.table.rows[number]} of {self.table.path})" if self.table else name

    def only(self, numbers: Sequence[int], *notes: str) -> Listing:
        """The entries at ``numbers``; ``notes`` say what was left out."""

        def some(column: Sequence[str]) -> list[str]:
            return [column[number] for number in numbers]

        return Listing(
            self.root,
            [self.files[number] for number in numbers],
            some(self.labels),
            None if self.splits is None else some(self.splits),
            {name: some(column) for name, column in self.attributes.items()},
            self.table and self.table._replace(columns={}, rows=[self.table.rows[number] for number in numbers]),
            (*self.notes, *notes),
        )


def list_table(
    root: Path,
    path: Path,
    *,
    file: str,
    label: str,
    split: str | None = "",
    split_path: Path | None = None,
    attributes: Sequence[str] = (),
    images: str = "",
) -> Listing:
    """The images that the table at ``path`` names, below the folder ``images`` of ``root``.

    ``file``, ``label``, ``split`` and ``attributes`` are columns. By default ``split`` is the column of that name if
    there is one; None: no column. The splits may be in a separate table at ``split_path``.
    """
    real, table = _real(root), read_table(path)
    files = _check_files(real, table, table.column(file, "data.file"), images)
    labels = table.column(label, "data.label")
    for name in attributes:
        require(attributes.count(name) == 1, f"data.attributes names the column '{name}' more than once.")
        require(name != label, f"data.attributes names the column '{name}', which is the label.")
    columns = {name: table.column(name, "data.attributes") for name in attributes}
    if split is None:
        splits = None
    elif split_path:
        splits = _splits_of(table, table.columns[file], read_table(split_path), file, split or SPLIT)
    elif split or SPLIT in table.columns:
        splits = split_names(table, table.column(split or SPLIT, "data.split"))
    else:
        splits = None
    return Listing(real, files, labels, splits, columns, table)


def _splits_of(table: Table, names: Sequence[str], other: Table, file: str, split: str) -> list[str]:
    """The split of each of ``names``, from the table ``other``."""
    # Its column of files may have no name of its own.
    key = file if file in other.columns else next(iter(other.columns))
    known = dict(zip(other.columns[key], split_names(other, other.column(split, "data.split")), strict=True))
    table.refuse(["" if name in known else f"'{name}' has no row in {other.path}" for name in names])
    return [known[name] for name in names]


def _check_files(root: Path, table: Table, names: Sequence[str], images: str) -> list[ImageFile]:
    inside, files, problems, first = _Inside(root), list[ImageFile](), list[str](), dict[str, int]()
    for row, name in zip(table.rows, names, strict=True):
        found = inside.file(os.path.join(images, name) if images else name)
        if isinstance(found, str):
            problems.append(f"'{name}' {found}")
            continue
        earlier = first.setdefault(found.name, row)
        problems.append("" if earlier == row else f"'{name}' is in row {earlier} already")
        files.append(found)
    table.refuse(problems)
    return files


class _Inside:
    """Files that are really below a root, even after links are followed."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._folders: dict[str, bool] = {}  # whether each folder is inside; checked once, not for each of its files

    def file(self, name: str) -> ImageFile | str:
        """The file ``name`` below the root, or what is wrong with it."""
        outside = f"leaves the folder {self._root}; only files below it can be used"
        if os.path.isabs(name) or PureWindowsPath(name).drive:
            return outside
        name = os.path.normpath(name)
        path = os.path.join(self._root, name)
        try:
            if name.startswith("..") and name[2:3] in ("", os.sep):
                return outside
            if not self._folder(os.path.dirname(path)):
                return outside
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                if not self._holds(path):
                    return outside
                found = os.stat(path)
        except (OSError, ValueError):  # ValueError: a name with a zero byte, or not encodable
            return "does not exist"
        if not stat.S_ISREG(found.st_mode):
            return "is not a file"
        return ImageFile(name, found.st_size, found.st_mtime_ns)

    def _folder(self, folder: str) -> bool:
        if folder not in self._folders:
            self._folders[folder] = self._holds(folder)
        return self._folders[folder]

    def _holds(self, path: str) -> bool:
        return os.path.commonpath([self._root, os.path.realpath(path)]) == self._root


def file_inside(root: Path) -> Callable[[str], ImageFile | str]:
    """A function that gives the file of a name below ``root``, or what is wrong with it."""
    return _Inside(root.resolve()).file


def list_folder(root: Path) -> Listing:
    """The images in ``root``/class/... or ``root``/split/class/..., labelled by the names of the folders."""
    walk = Walk(_real(root))
    tops, loose = walk.scan("")
    found = {top: list(walk.below(top)) for top in tops}
    full = [top for top in tops if found[top]]
    if not full:
        raise UnspurError(_nothing_in(root, bool(loose)))
    splits = {top: SPLITS[top.lower()] for top in tops if top.lower() in SPLITS and not top.isdigit()}
    if all(top in splits for top in full):
        return _split_folders(walk, {top: found[top] for top in splits}, splits)
    for top in splits:  # a class may be called train, but then its images lie directly in it
        if found[top] and all(file.name.count("/") > 1 for file in found[top]):
            other = next(name for name in full if name not in splits)
            raise UnspurError(
                f"{root} holds the split '{top}' beside '{other}', which is no split; leave either splits (train, val, "
                "test) or classes there."
            )
    files = [file for top in full for file in found[top]]
    notes = [f"Images left out for being in no class folder: {len(loose):,}, such as {loose[0].name}."] if loose else []
    notes += [f"The folder '{top}' holds no images." for top in tops if not found[top]]
    return Listing(walk.root, files, [_part(file, 0) for file in files], notes=(*notes, *walk.notes()))


def _split_folders(walk: Walk, found: Mapping[str, Sequence[ImageFile]], splits: Mapping[str, str]) -> Listing:
    for top, files in found.items():
        require(bool(files), f"The split folder {walk.root / top} holds no images; fill it or remove it.")
        bare = [file.name for file in files if file.name.count("/") < 2]
        require(not bare, f"{bare and walk.root / bare[0]} lies in the split '{top}' but in no class folder.")
    entries = [(file, splits[top]) for top, files in found.items() for file in files]
    files = [file for file, _ in entries]
    labels = [_part(file, 1) for file in files]
    return Listing(walk.root, files, labels, [split for _, split in entries], notes=walk.notes())


class Walk:
    """The folders below a root, without hidden ones and without links to folders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._inside = _Inside(root)
        self._others, self._other = 0, ""  # files that are no images by their endings: how many, and the first

    def scan(self, folder: str) -> tuple[list[str], list[ImageFile]]:
        """The folders and the images directly in ``folder``, each sorted by name."""
        folders, names = self._names_in(folder)
        files = list[ImageFile]()
        for name in names:
            found = self._inside.file(name)
            if isinstance(found, str):
                raise UnspurError(f"{self.root / name} {found}.")
            files.append(found)
        return folders, files

    def below(self, folder: str) -> Iterator[ImageFile]:
        """The images in ``folder`` and in the folders below it."""
        folders, files = self.scan(folder)
        yield from files
        for name in folders:
            yield from self.below(name)

    def names_below(self, folder: str) -> Iterator[tuple[str, str]]:
        """The names of those images in the same order, each with what is wrong with it; holds one folder at a time."""
        folders, names = self._names_in(folder)
        for name in names:
            found = self._inside.file(name)
            yield name, found if isinstance(found, str) else ""
        del names
        for name in folders:
            yield from self.names_below(name)

    def count_below(self, folder: str) -> int:
        """How many images ``names_below`` gives."""
        folders, names = self._names_in(folder)
        return len(names) + sum(self.count_below(name) for name in folders)

    def notes(self) -> tuple[str, ...]:
        return (f"Files left out for not being images: {self._others:,}, such as {self._other}.",) * bool(self._others)

    def _names_in(self, folder: str) -> tuple[list[str], list[str]]:
        folders, names = list[str](), list[str]()
        for entry in self._entries(folder):
            name = os.path.join(folder, entry.name)
            if not _is_utf8(name):
                raise UnspurError(f"The name of {os.fsencode(self.root / name)!r} is not UTF-8; rename it.")
            if entry.name.startswith("."):
                continue
            if _is_folder(entry):
                require(
                    not entry.is_symlink(), f"The folder {self.root / name} is a link; put the images there instead."
                )
                folders.append(name)
            elif os.path.splitext(name)[1].lower() in suffixes():
                names.append(name)
            else:
                self._others, self._other = self._others + 1, self._other or name
        return sorted(folders), sorted(names)

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / folder) as entries:
                yield from entries
        except OSError as error:
            raise UnspurError(f"The folder {self.root / folder} cannot be read ({error.strerror}).") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # such as a link to itself
        raise UnspurError(f"{entry.path} cannot be read ({error.strerror}); remove it.") from None


def _nothing_in(root: Path, loose: bool) -> str:
    tables = sorted(path.name for path in root.iterdir() if path.suffix == ".csv")
    if tables:
        return f"{root} holds no class folders; read its table with --set data.csv={tables[0]}."
    held = "images but no class folders" if loose else "no images"
    return f"{root} holds {held}; make a folder for each class, or name a table of labels with --set data.csv=FILE."


def _part(file: ImageFile, number: int) -> str:
    return file.name.split("/")[number]


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _real(root: Path) -> Path:
    require(
        root.exists(),
        f"The folder {root} does not exist; name your images' folder with --set data.root=PATH, or if a stored run was "
        "trained on them, put them back there.",
    )
    require(root.is_dir(), f"{root} is a file; name the folder of your images with --set data.root=PATH.")
    return root.resolve()
