"""A file of rows that survives any interruption: only whole rows count, and a resumed run continues after the last."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from unspur.core.files import read_json, replacing, writable, write_json
from unspur.errors import UnspurError, require
from unspur.practice.predict.inputs import Named
from unspur.practice.predict.rows import CSV, Format, JSONLines, Row

SYNC_SECONDS = 2.0  # how often rows are forced to the disk: the work that a power failure may lose
FORMATS = (".csv", ".jsonl", ".parquet")


class RowFile:
    """The output ``path``, with what made it (``about``) in a file beside it.

    Parquet files cannot be appended to, so rows go to a file of JSON lines, which becomes Parquet at the end.
    """

    def __init__(self, path: Path, top: int, about: dict[str, Any], resume: bool = False, sets: bool = False) -> None:
        """``about`` says what made the rows, and must be the same when a file is resumed; ``sets`` adds a column."""
        require(
            path.suffix.lower() in FORMATS,
            f"--out must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, but got {path}.",
        )
        require(not path.is_dir(), f"{path} is a folder; name a file, such as {path / 'labels.csv'}.")
        self.path, self._about, self._sets = path, about, sets
        self._parquet = path.suffix.lower() == ".parquet"
        if self._parquet:
            _pyarrow()
        self._rows = path.with_name(f"{path.name}.rows.jsonl") if self._parquet else path
        self._format: Format = CSV(top, sets) if path.suffix.lower() == ".csv" else JSONLines()
        taken = next((path for path in (self._rows, self.path) if path.exists()), None)
        require(resume or taken is None, f"{taken} exists; go on with --resume, or name another file.")
        self._end, self._synced, self._descriptor = 0, time.monotonic(), -1

    @property
    def about(self) -> Path:
        """The file that says what made the rows."""
        return self.path.with_name(f"{self.path.name}.about.json")

    @contextlib.contextmanager
    def opened(self, images: Iterator[Named], note: dict[str, Any] | None = None) -> Iterator[int]:
        """Open the file after its last whole row; yield how many of ``images`` have a row.

        ``note`` is kept beside a new file, together with what made the rows.
        """
        writable(self.path.absolute().parent)
        lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise UnspurError(f"Another process writes {self.path}; wait for it, or name another file.") from None
        try:
            if self._parquet and self.path.exists():
                raise UnspurError(f"{self.path} is complete; name another file.")
            yield self._begin(images, note or {})
        finally:
            if self._descriptor >= 0:
                os.close(self._descriptor)
            with contextlib.suppress(OSError):
                Path(lock.lock_file).unlink()
            lock.release()

    def add(self, rows: Sequence[Row]) -> None:
        """Append whole rows: if not all of them can be written, such as on a full disk, none of them is kept."""
        data = memoryview(b"".join(map(self._format.row, rows)))
        self._write(data)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            os.fsync(self._descriptor)
            self._synced = time.monotonic()

    def finish(self) -> None:
        """Force everything to the disk; a Parquet file is only made now."""
        os.fsync(self._descriptor)
        if self._parquet:
            _to_parquet(self._rows, self.path, self._sets)
            self._rows.unlink()

    def _begin(self, images: Iterator[Named], note: dict[str, Any]) -> int:
        head = self._format.head()
        start, size = b"", 0
        if self._rows.exists():
            with self._rows.open("rb") as file:
                start, size = file.read(len(head)), self._rows.stat().st_size
        foreign = not head.startswith(start) or (size > len(head) and not self.about.exists())
        require(not foreign, f"{self._rows} was not written by this command; name another file.")
        if size > len(head):
            self._require_same(read_json(self.about))
        else:
            write_json(self.about, self._about | note)
        self._descriptor = os.open(self._rows, os.O_RDWR | os.O_CREAT, 0o666)
        if size > len(head):
            return self._skip(images, len(head))
        self._cut()  # an incomplete header
        self._write(memoryview(head))
        return 0

    def _require_same(self, made: Any) -> None:
        """Raise an error if another model or another rule made the file: all its rows must be comparable."""
        require(
            isinstance(made, dict), f"{self.about} is not what this command writes; restore it, or name another file."
        )
        differs = next((key for key in self._about if made.get(key) != self._about[key]), None)
        require(
            differs is None,
            f"{self.path} was made with another {differs} ({made.get(differs or '')}); use that, or name another file.",
        )

    def _skip(self, images: Iterator[Named], start: int) -> int:
        """Move past the last whole row and as many images, which must be those of the rows; cut off what follows."""
        done, self._end = 0, start
        with self._rows.open("rb") as file:
            file.seek(start)
            for name, end in self._whole(file):
                image = next(images, None)
                wanted = image and self._format.name(Row(image.name, (), False, ""))
                require(
                    name == wanted,
                    f"Row {done + 1} of {self.path} is of {name}, but that image is now {wanted or 'missing'}; put the "
                    "images back, or name another file.",
                )
                done, self._end = done + 1, end
        self._cut()
        return done

    def _whole(self, file: BinaryIO) -> Iterator[tuple[str, int]]:
        try:
            yield from self._format.names(file)
        except (ValueError, LookupError, TypeError):  # no text, no JSON, or none of ours
            raise UnspurError(
                f"{self._rows} holds rows that this command does not write; restore it, or name another file."
            ) from None

    def _cut(self) -> None:
        os.ftruncate(self._descriptor, self._end)
        os.lseek(self._descriptor, self._end, os.SEEK_SET)

    def _write(self, data: memoryview) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            self._cut()
            error.filename = str(self.path)
            raise
        self._end += written


def _pyarrow() -> Any:  # it brings no types
    try:
        import pyarrow.json
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise UnspurError("Parquet needs one more package: pip install pyarrow; or write .csv or .jsonl.") from None
    return pyarrow


def _to_parquet(rows: Path, path: Path, sets: bool) -> None:
    """Turn JSON lines into Parquet, some at a time."""
    arrow = _pyarrow()
    guess = arrow.struct([("label", arrow.string()), ("probability", arrow.float64())])
    schema = arrow.schema(
        [
            ("filename", arrow.string()),
            ("label", arrow.string()),
            ("probability", arrow.float64()),
            ("top", arrow.list_(guess)),
            ("abstain", arrow.bool_()),
            ("why", arrow.string()),
            *[("set", arrow.list_(arrow.string()))] * sets,
        ]
    )
    with replacing(path) as temporary:
        if not rows.stat().st_size:
            arrow.parquet.write_table(schema.empty_table(), temporary)
            return
        options = arrow.json.ParseOptions(explicit_schema=schema)
        with (
            arrow.json.open_json(rows, parse_options=options) as batches,
            arrow.parquet.ParquetWriter(temporary, schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
