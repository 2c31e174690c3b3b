"""Methods, architectures and data sets, one line each, read from their source so that torch need not be imported."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence

from unspur.core.outline import Outline, catalogue
from unspur.methods.shown import Shown, shown

Row = Sequence[str]
Facts = Mapping[str, str | None]
UNKNOWN = "-"
TRIED = "shown to repair"
NO_GAIN = "no gain"
LEAST = 2.0  # points that a gain must have to be called a repair: less is within what seeds differ by


def method_rows() -> list[Row]:
    """Each method: whether it needs group labels, what it costs in units of plain training, where it comes from."""
    rows: list[Row] = [("method", "groups", "network", "cost", TRIED, "from", "what it does")]
    known = shown()
    for name, method in catalogue("unspur.methods.catalog", "METHODS").items():
        own = method.constants
        groups = "needed" if own.get("needs_groups") else "validation" if own.get("needs_val_groups") else "no"
        cost = str(own.get("cost") or UNKNOWN)
        network = str(own.get("network") or "any")
        rows.append((name, groups, network, cost, _best(known.get(name, [])), *_source_and_summary(method)))
    return rows


def in_words(entry: Shown) -> str:
    """One line of what was shown.

    >>> figures = {"before": 82.6, "after": 98.4, "seeds": 1, "file": "f"}
    >>> in_words({"shortcut": "a square", "cue": "place", "images": "digits", **figures})
    'a square (digits): 82.6 to 98.4 %, 1 seed, f'
    """
    seeds = f"{entry['seeds']} seed{'' if entry['seeds'] == 1 else 's'}"
    return f"{entry['shortcut']} ({entry['images']}): {entry['before']} to {entry['after']} %, {seeds}, {entry['file']}"


def tried(name: str) -> str | None:
    """All that the method ``name`` was tried on; None where that is nothing."""
    return "; ".join(in_words(entry) for entry in shown().get(name, [])) or None


def _best(entries: Sequence[Shown]) -> str:
    """The shortcut that a method gained most on, if it gained; unknown where nothing was tried."""
    gains = [(entry["after"] - entry["before"], entry) for entry in entries]
    gain, entry = max(gains, key=lambda one: one[0], default=(0.0, None))
    if entry is None:
        return UNKNOWN
    return f"{entry['shortcut']}: {entry['before']} to {entry['after']} %" if gain >= LEAST else NO_GAIN


def arch_rows() -> list[Row]:
    """Each architecture of our own; those of torchvision have their own names."""
    rows: list[Row] = [("architecture", "from", "what it is")]
    for name, arch in catalogue("unspur.models.catalog", "ARCHS").items():
        rows.append((name, *_source_and_summary(arch)))
    return rows


def data_rows() -> list[Row]:
    """Each data set: how to get its files, where it comes from."""
    rows: list[Row] = [("data set", "files", "from", "what it is")]
    for name, data in catalogue("unspur.data.catalog", "DATASETS").items():
        files = _files(data)
        source, summary = _source_and_summary(data)
        published = {"yours": "you"}.get(files, "its authors")
        rows.append((name, files, published if source == UNKNOWN else source, summary))
    return rows


DATA_LEGEND = """\
files: "fetch" is downloaded by `unspur data fetch NAME`; "by hand": `unspur data info NAME` says where to get it;
       "mini": --set data.base=mini uses digits that come with unspur; "none": it is computed."""
METHODS_LEGEND = """\
groups: whether it needs group labels; "needed" in training, "validation" in the validation data alone.
cost: in units of plain training.
network: "from scratch": it spoils what a pretrained one knows; "pretrained": it reads the features that it begins with.
shown to repair: what it gained most on here, per cent right where the shortcut misleads, without and with it;
                 "-": not in these tables; "no gain": less than two points; docs/which-method.md has the whole table."""


def _files(data: Outline) -> str:
    """How to get the files of a data set, by which of DataSpec's methods it overrides."""
    downloads, reads = (data.methods.get(method) != "DataSpec" for method in ("needs", "found"))
    if downloads:
        return "fetch or mini" if "'mini'" in data.fields.get("base", "") and not reads else "fetch"
    return "by hand" if reads else "yours" if "root" in data.fields else "none"


def _source_and_summary(outline: Outline) -> tuple[str, str]:
    """Where a class comes from: its ``paper``, or what stands in brackets at the end of its first line.

    >>> _source_and_summary(Outline("X", "Hide what it looks at (MaskTune 2; also A.1).", {}, {}, {}))
    ('MaskTune 2', 'Hide what it looks at.')
    """
    bracket = re.search(r" \(([^()]+)\)\.$", outline.summary)
    if not bracket:
        return str(outline.constants.get("paper") or UNKNOWN), outline.summary
    short = re.split(r": |; ", bracket[1])[0]
    return str(outline.constants.get("paper") or short), outline.summary[: bracket.start()] + "."


def print_rows(rows: Sequence[Row], legend: str) -> None:
    """Columns of text, and below them what needs a sentence; on a terminal each row is cut to one line."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for row in rows:
        print(_cut("  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1])), room))
    print(f"\n{legend}")


def _cut(line: str, room: int | None) -> str:
    return line if room is None or len(line) <= room else line[: room - 1] + "…"


def facts(rows: Iterable[Row]) -> dict[str, Facts]:
    """The same rows as values by name and heading, without the summary; what is unknown is None."""
    header, *body = rows
    known = [(row[0], [None if cell == UNKNOWN else cell for cell in row[1:-1]]) for row in body]
    return {name: dict(zip(header[1:-1], cells, strict=True)) for name, cells in known}
