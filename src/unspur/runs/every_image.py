"""Every image of a folder or a table as one test set, read as the images were that a run was trained on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from unspur.core.files import user_path
from unspur.data.base import Dataset, Split
from unspur.data.catalog import DATASETS
from unspur.data.files.fetch import DataFiles
from unspur.data.images.decode import SquareFit, suffixes
from unspur.data.images.listing import Listing, Walk
from unspur.data.images.splitting import codes, names_in_order
from unspur.data.images.table import read_table
from unspur.data.sets.folder import Folder
from unspur.data.spec import DataSpec
from unspur.errors import UnspurError, require, unknown
from unspur.runs.config import pairs, with_data_settings

TEST = "all"  # what the test set of every image is called
TABLES = (".csv", ".tsv", ".txt")
UNUSED = ("split", "split_csv", "val", "test", "seed", "augment")  # options of training and splits


class EveryImage(NamedTuple):
    """All images that were named, as a test set for a run, and what a reader of its scores must know."""

    data: Dataset
    warnings: list[str]


def named_images(given: str, settings: Sequence[str], own: DataSpec, trained: Dataset) -> Folder:
    """The images that ``given`` names, a folder or a table, to be read as those of ``own`` were.

    ``settings`` may name columns and the like; a table's columns are those that ``own`` has, where that is a table.
    """
    for key, _ in pairs(settings):
        unused = key.removeprefix("data.").partition(".")[0] in UNUSED
        require(not unused, f"{key} has no effect here: every image of {given} is scored, whatever its split.")
    path = user_path(given)
    size = _size(trained)
    fit: SquareFit = getattr(own, "fit", "stretch")
    if path.is_dir():
        base = Folder(root=given, size=size, fit=fit)
    elif path.is_file() and path.suffix.lower() in TABLES:
        base = Folder(root=str(path.parent), csv=str(path.absolute()), size=size, fit=fit)
    else:
        raise _no_images(given, path)
    spec = with_data_settings(_like(base, own) if base.csv else base, settings)
    assert isinstance(spec, Folder)
    return spec


def every_image(spec: Folder, own: DataSpec, trained: Dataset, files: DataFiles) -> EveryImage:
    """Every image of ``spec`` in the classes of ``trained``, which is what ``own`` loads."""
    _require_labels(spec)
    listing = files.once((spec, TEST), lambda: spec.listing(splits=False))
    _require_known(listing, trained.classes, _origin(spec))
    listing, images, content = spec.images_of(listing, files)
    values = {
        name: _extended(trained.attribute_values.get(name, ()), column) for name, column in listing.attributes.items()
    }
    columns = {name: codes(column, values[name]) for name, column in listing.attributes.items()}
    test = Split(images, codes(listing.labels, trained.classes), columns)
    trained_on = own.training_content(files) if isinstance(own, Folder) else set()
    said = [*listing.notes, *_seen_in_training(content, trained_on)]
    known: Mapping[str, tuple[str, ...]] = {**trained.attribute_values, **values}
    return EveryImage(replace(trained, name=_origin(spec), tests={TEST: test}, attribute_values=known), said)


def _size(trained: Dataset) -> int:
    shape = tuple(trained.sample_shape)
    require(
        len(shape) == 3 and shape[0] == 3 and shape[1] == shape[2],
        f"The run takes inputs of {shape}, but a folder's images are read as squares in three colours; evaluate it "
        "on a data set by name (`unspur data list`).",
    )
    return int(shape[1])


def _like(table: Folder, own: DataSpec) -> Folder:
    """``table`` with the columns of ``own`` where that is a table too, as far as it has them."""
    if not isinstance(own, Folder) or not own.csv:
        return table
    columns = read_table(table.table).columns
    return replace(
        table,
        file=own.file if own.file in columns else table.file,
        label=own.label if own.label in columns else table.label,
        attributes=tuple(name for name in own.attributes if name in columns),
        images=own.images if own.images and Path(table.root, own.images).is_dir() else "",
    )


def _no_images(given: str, path: Path) -> UnspurError:
    if path.is_file() and path.suffix.lower() in suffixes():
        return UnspurError(
            f"{given} is one image; evaluate a folder of images by class or a table of them, or ask for its class with "
            "`unspur predict`."
        )
    if path.exists():
        return UnspurError(f"{given} is neither a folder of images nor a table of them ({', '.join(TABLES)}).")
    if os.sep in given or path.suffix:
        return UnspurError(f"{given} does not exist; name a folder of images, a table of them or a data set.")
    return unknown("data set", given, DATASETS)


def _require_labels(spec: Folder) -> None:
    """Scores need labels: without any, ``unspur predict`` is the command."""
    if spec.csv:
        require(
            spec.label in read_table(spec.table).columns,
            f"{spec.table} has no column '{spec.label}', so there is nothing to compare the answers with; name the "
            "column of labels with --set data.label=COLUMN, or label the images with `unspur predict`.",
        )
        return
    walk = Walk(user_path(spec.root).resolve())
    folders, loose = walk.scan("")
    require(
        not loose or any(True for folder in folders for _ in walk.below(folder)),
        f"{spec.root} holds images but no class folders, so there is nothing to compare the answers with; make a "
        "folder for each class, or label the images with `unspur predict`.",
    )


def _require_known(listing: Listing, classes: Sequence[str], origin: str) -> None:
    strange = [name for name in names_in_order(listing.labels) if name not in classes]
    require(
        not strange,
        f"{origin} has images of {_quoted(strange)}, but the run knows {_quoted(classes)}; leave them out, or name the "
        "classes as the run does.",
    )


def _quoted(names: Sequence[str], most: int = 5) -> str:
    """
    >>> _quoted(["a", "b"]), _quoted("abcdefg")
    ("'a' and 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    shown = [f"'{name}'" for name in names[:most]] + ([f"{len(names) - most} more"] if len(names) > most else [])
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _extended(known: Sequence[str], column: Sequence[str]) -> tuple[str, ...]:
    """The values of an attribute that the run knows, and behind them those that are new here."""
    return (*known, *(value for value in names_in_order(column) if value not in known))


def _seen_in_training(content: Sequence[bytes], trained: set[bytes]) -> list[str]:
    seen = sum(digest in trained for digest in content)
    if not seen:
        return []
    return [
        f"{seen:,} of the {len(content):,} images are among those that the run was trained on, so these scores flatter "
        "it; `unspur evaluate RUN` alone scores its own test set."
    ]


def _origin(spec: Folder) -> str:
    return str(spec.table) if spec.csv else spec.root
