"""A row for each image, as CSV and as JSON: every byte of a name survives, and no spreadsheet runs it as a formula."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple, NotRequired, Protocol, TypedDict

DIGITS = 6  # of probabilities
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what makes a spreadsheet read a cell as a formula


class Guess(NamedTuple):
    """A class and its probability."""

    label: str
    probability: float


class Row(NamedTuple):
    """The result for one image."""

    filename: str
    top: tuple[Guess, ...]  # the likeliest classes; none for a file that cannot be read
    abstain: bool
    why: str  # of abstaining; empty otherwise
    labels: tuple[str, ...] | None = None  # that hold the right one for a share of images; None: not asked for


class GuessJSON(TypedDict):
    label: str
    probability: float


class RowJSON(TypedDict):
    filename: str  # as it was named
    label: str | None  # the likeliest class; None for a file that cannot be read
    probability: float | None  # of that
    top: list[GuessJSON]  # the likeliest classes, as many as --topk asks for
    abstain: bool  # true: do not use the label
    why: str | None  # the reason
    set: NotRequired[list[str]]  # with --conformal: labels that hold the right one for the share of images asked for


def as_json(row: Row) -> RowJSON:
    top: list[GuessJSON] = [
        {"label": guess.label, "probability": round(guess.probability, DIGITS)} for guess in row.top
    ]
    stored: RowJSON = {
        "filename": row.filename,
        "label": top[0]["label"] if top else None,
        "probability": top[0]["probability"] if top else None,
        "top": top,
        "abstain": row.abstain,
        "why": row.why or None,
    }
    if row.labels is not None:
        stored["set"] = list(row.labels)
    return stored


class Format(Protocol):
    """How rows are written one after the other, and found again."""

    def head(self) -> bytes:
        """What comes before the first row."""
        ...

    def row(self, row: Row) -> bytes:
        """One row, including its line end."""
        ...

    def name(self, row: Row) -> str:
        """The name of ``row`` as ``names`` gives it."""
        ...

    def names(self, file: BinaryIO) -> Iterator[tuple[str, int]]:
        """The name of each whole row in ``file``, and where the row ends; ``file`` is positioned after the head."""
        ...


class CSV:
    """Columns for a spreadsheet; a cell that would be taken for a formula gets a leading apostrophe."""

    def __init__(self, top: int, sets: bool = False) -> None:
        self._top, self._sets = top, sets

    def head(self) -> bytes:
        more = [f"{name}_{number}" for number in range(2, self._top + 1) for name in ("label", "probability")]
        return _line(["filename", "label", "probability", *more, "abstain", "why", *["set"] * self._sets])

    def row(self, row: Row) -> bytes:
        guesses = [text for guess in row.top for text in (safe(guess.label), f"{guess.probability:.{DIGITS}f}")]
        guesses += [""] * (2 * self._top - len(guesses))
        # A JSON list, because a label may hold any other separator.
        labels = [json.dumps(row.labels) if row.labels else ""] * self._sets
        return _line([safe(row.filename), *guesses, "true" if row.abstain else "false", safe(row.why), *labels])

    def name(self, row: Row) -> str:
        return safe(row.filename)

    def names(self, file: BinaryIO) -> Iterator[tuple[str, int]]:
        record, end = b"", file.tell()
        for line in file:
            record += line
            if record.count(b'"') % 2 == 0 and record.endswith(b"\n"):
                end += len(record)
                yield _first_cell(record.decode()), end
                record = b""


class JSONLines:
    """One JSON object per line, with names unchanged."""

    def head(self) -> bytes:
        return b""

    def row(self, row: Row) -> bytes:
        return json.dumps(as_json(row)).encode() + b"\n"

    def name(self, row: Row) -> str:
        return row.filename

    def names(self, file: BinaryIO) -> Iterator[tuple[str, int]]:
        end = file.tell()
        for line in file:
            if line.endswith(b"\n"):
                end += len(line)
                yield json.loads(line)["filename"], end


def safe(text: str) -> str:
    """``text`` in a form that no spreadsheet runs as a formula.

    >>> safe("=1+1"), safe("cat")
    ("'=1+1", 'cat')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


def _line(cells: Sequence[str]) -> bytes:
    return (",".join(map(_quoted, cells)) + "\n").encode()


def _quoted(cell: str) -> str:
    if cell != cell.strip() or any(mark in cell for mark in ',"\n\r'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _first_cell(record: str) -> str:
    """
    >>> _first_cell('"a ""b"", c",cat'), _first_cell("d,dog")
    ('a "b", c', 'd')
    """
    if not record.startswith('"'):
        return record.partition(",")[0]
    end = 1
    while record[end : end + 2] == '""' or record[end] != '"':
        end += 2 if record[end] == '"' else 1
    return record[1:end].replace('""', '"')
