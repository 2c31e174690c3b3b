"""What `unspur audit` was pointed at: a folder, a table, a data set by name, or a stored run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from unspur.core.files import user_path
from unspur.data.catalog import DATASETS
from unspur.data.spec import DataSpec
from unspur.errors import UnspurError, require, unknown
from unspur.practice.audit.image_source import Source
from unspur.practice.audit.model import ModelToTest
from unspur.practice.audit.onnx_model import onnx_model
from unspur.practice.audit.sources import run_source, source_of, train_words
from unspur.runs.config import configure_data

TABLES = (".csv", ".tsv", ".txt")


class Target(NamedTuple):
    """Images to audit, and the model to test on them."""

    name: str  # of the audit's folder
    source: Source
    words: str  # the data as `unspur train` takes them
    model: ModelToTest | None  # None: the audit trains a quick one


def target_named(
    what: str, settings: Sequence[str] = (), data_dir: Path | None = None, onnx: Path | None = None
) -> Target:
    """The images and the model that ``what`` names; a data set's name goes before a folder's (``./mnist`` is one)."""
    path = user_path(what)
    if what not in DATASETS and path.is_dir() and (path / "config.json").exists():
        require(not (path / "suspects.csv").exists(), f"{what} is an audit already; open {path / 'audit.html'}.")
        require(onnx is None, f"{what} is a run and has a model of its own; leave --model out, or audit its images.")
        require(not settings, f"{what} is a run, whose data are fixed; leave --set out, or audit its images.")
        run = run_source(path, data_dir)
        model = run.model()
        source = replace(run.source, side=model.side)
        return Target(path.resolve().name, source, train_words(run.run.config.data), model)
    name, spec = data_named(what, settings)
    source = source_of(spec, data_dir)
    if len(source.classes) == 1 and path.is_dir() and (tables := _tables(path)):
        raise UnspurError(
            f"The folders in {what} name one class, '{source.classes[0]}', and its table {tables[0].name} may name "
            f"more; audit {shlex.quote(str(tables[0]))}."
        )
    if onnx is None:
        return Target(name, source, train_words(spec), None)
    given = onnx_model(onnx, source.classes)
    return Target(name, replace(source, side=given.side), train_words(spec), given)


def _tables(folder: Path) -> list[Path]:
    """Files that are surely tables; a .txt file may just be somebody's notes."""
    return sorted(each for each in folder.iterdir() if each.suffix.lower() in (".csv", ".tsv") and each.is_file())


def data_named(what: str, settings: Sequence[str] = ()) -> tuple[str, DataSpec]:
    """The data set, folder or table that ``what`` names, and what to call it."""
    path = user_path(what)
    if what in DATASETS:
        return what, configure_data(what, settings)
    if path.is_dir():
        return path.resolve().name, configure_data("folder", [f"data.root={what}", *settings])
    if path.is_file():
        require(
            path.suffix.lower() in TABLES,
            f"{what} is a file, but neither a folder of images nor a table (.csv, .tsv or .txt); name one of these.",
        )
        own = [f"data.root={path.parent}", f"data.csv={path.name}"]
        return path.stem, configure_data("folder", [*own, *settings])
    near = str(unknown("data set", what, DATASETS))
    hint = near.partition(". ")[2] if "Did you mean" in near else "`unspur data list` names the data sets."
    raise UnspurError(f"There is no folder, table, run or data set '{what}'. {hint}")
