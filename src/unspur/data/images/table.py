"""A table of images: a CSV file, or a list as CelebA publishes it, as named columns with the row of each entry."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from unspur.core.files import require_file
from unspur.errors import UnspurError, unknown

FILE, SPLIT = "filename", "split"  # the names of columns that a table leaves unnamed
SPLITS = {
    "train": "train", "training": "train", "0": "train",
    "val": "val", "valid": "val", "validation": "val", "1": "val",
    "test": "test", "testing": "test", "2": "test",
}  # fmt: skip


class Table(NamedTuple):
    """Columns of text by name."""

    path: Path
    columns: dict[str, list[str]]
    rows: list[int]  # the row of each entry in the file, counted from 1 as an editor or a spreadsheet does

    def column(self, name: str, option: str) -> list[str]:
        """The column ``name``, which the option ``option`` asks for; it must be there and have no empty cell."""
        if name not in self.columns:
            near = unknown(f"column of {self.path}", name, self.columns)
            raise UnspurError(f"{near} Name the right one with --set {option}=COLUMN.")
        column = self.columns[name]
        self.refuse(["" if text else f"column '{name}' is empty" for text in column])
        return column

    def refuse(self, problems: Sequence[str]) -> None:
        """Raise what is wrong with the first entry that has a problem, and say how many have one."""
        wrong = [number for number, problem in enumerate(problems) if problem]
        if wrong:
            more = f" (and {len(wrong) - 1:,} more)" if len(wrong) > 1 else ""
            raise UnspurError(f"{self.path}, row {self.rows[wrong[0]]}: {problems[wrong[0]]}{more}.")


def read_table(path: Path) -> Table:
    """Read a table with a header and fields separated by commas, semicolons or tabs.

    In a ``.txt`` file they may be separated by spaces, as in CelebA's lists. Those may begin with a count, leave the
    column of files without a name, or have no header at all.
    """
    records = [(row, [cell.strip() for cell in record]) for row, record in _records(path) if record]
    if not records:
        raise UnspurError(f"{path} is empty; its first row must name the columns, such as filename,label.")
    header_row, header = records.pop(0)
    if path.suffix == ".txt" and records:
        if header[0].isdigit() and len(header) == 1:
            header_row, header = records.pop(0)
        if len(header) == 2 and header[1] in SPLITS:
            records.insert(0, (header_row, header))
            header = [FILE, SPLIT]
        elif records and len(records[0][1]) == len(header) + 1:
            header = [FILE, *header]
    if not records:
        raise UnspurError(f"{path} has a header and no rows.")
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise UnspurError(f"{path}, row {header_row}: there are several columns '{twice}'; give each its own name.")
    rows = [row for row, _ in records]
    table = Table(path, {}, rows)
    table.refuse(
        [
            "" if len(record) == len(header) else f"the header names {len(header)} fields, but here are {len(record)}"
            for _, record in records
        ]
    )
    columns = zip(*(record for _, record in records), strict=True)
    return Table(path, {name: list(column) for name, column in zip(header, columns, strict=True)}, rows)


def cells_of(path: Path, name: str, option: str) -> Iterator[tuple[int, str]]:
    """The rows of a CSV file's column ``name``, one at a time: a table of any length takes no memory.

    ``option`` is the command-line option for another column. In a file with a single column, that column is taken.
    """
    require_file(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = max(",;\t", key=file.readline().count)
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)
            header = [cell.strip() for cell in next(reader, [])]
            if not header:
                raise UnspurError(f"{path} is empty; its first row must name the columns, such as {FILE}.")
            if name not in header and len(header) > 1:
                raise UnspurError(f"{unknown(f'column of {path}', name, header)} Name the right one with {option}.")
            place = header.index(name) if name in header else 0
            for row, record in enumerate(reader, 2):
                if record:
                    yield row, record[place].strip() if place < len(record) else ""
    except OSError as error:
        raise UnspurError(f"The table {path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise UnspurError(f"{path} is not UTF-8; save the table as UTF-8.") from None
    except csv.Error as error:
        raise UnspurError(f"{path}, row {reader.line_num}: this is not CSV ({error}).") from None


def split_names(table: Table, column: Sequence[str]) -> list[str]:
    """A column of splits, given by name or as 0, 1, 2, converted to ``train``, ``val`` and ``test``."""
    names = [SPLITS.get(text.lower(), "") for text in column]
    table.refuse(
        [
            "" if name else f"split '{text}' is none of train, val, test, 0, 1, 2"
            for name, text in zip(names, column, strict=True)
        ]
    )
    return names


def _records(path: Path) -> list[tuple[int, list[str]]]:
    """The fields of each row, with the number of the row."""
    text = _text(path)
    if path.suffix == ".txt" and not any(mark in text for mark in ",;\t"):
        return [(row, line.split()) for row, line in enumerate(text.splitlines(), 1)]
    header = text.partition("\n")[0]
    delimiter = max(",;\t", key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        return list(enumerate(reader, 1))
    except csv.Error as error:
        raise UnspurError(f"{path}, row {reader.line_num}: this is not CSV ({error}).") from None


def _text(path: Path) -> str:
    require_file(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnspurError(f"The table {path} cannot be read ({error.strerror}).") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise UnspurError(
            f"{path}, row {row}: the byte 0x{content[error.start]:02x} is not UTF-8; save the table as UTF-8."
        ) from None
