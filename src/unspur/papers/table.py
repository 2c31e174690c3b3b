"""A published table as data: each cell a configuration, where its value is found, and what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, Protocol, cast

from unspur.data.files.fetch import DataFiles
from unspur.evaluation.figures import figures
from unspur.evaluation.scores import ScoreName, predict
from unspur.methods.catalog import method_named
from unspur.runs.analyze import analyze, stored_analysis
from unspur.runs.config import Config, configure
from unspur.runs.folder import Run
from unspur.runs.result import Result
from unspur.runs.scoring import score_run


class Measure(Protocol):
    """Where in a finished run a cell's value is, in the table's own unit."""

    def of(self, run: Run, result: Result, data_dir: Path | None) -> float | None: ...


@dataclass(frozen=True)
class Score:
    """A score on a test set, of the result or of an earlier stage of it."""

    test: str
    field: ScoreName = "accuracy"
    stage: str | None = None

    def of(self, run: Run, result: Result, data_dir: Path | None) -> float | None:
        tests = result["stages"][self.stage]["tests"] if self.stage else result["tests"]
        value = tests[self.test][self.field]
        return None if value is None else 100 * value


@dataclass(frozen=True)
class Misled:
    """The mean accuracy of a test set's groups in which every attribute is that of another class."""

    test: str

    def of(self, run: Run, result: Result, data_dir: Path | None) -> float | None:
        groups = result["tests"][self.test]["groups"]
        values = [own["accuracy"] for own in groups if own["y"] not in own["attributes"].values()]
        return 100 * fmean(values) if values else None


@dataclass(frozen=True)
class Fact:
    """A share among what the method measured on the way, such as the weights that it kept or its mining's precision."""

    name: str
    field: str = ""  # of a fact that has several

    def of(self, run: Run, result: Result, data_dir: Path | None) -> float | None:
        value = cast(Mapping[str, Any], result["facts"])[self.name]
        value = value[self.field] if self.field else value
        return None if value is None else 100 * value


@dataclass(frozen=True)
class Abstaining:
    """Coverage or error of a way to abstain, the threshold chosen on validation data for a target coverage."""

    test: str
    mode: str  # product, softmax_response or learned
    target: float
    field: str  # coverage or error

    def of(self, run: Run, result: Result, data_dir: Path | None) -> float | None:
        scores = _selective(run, data_dir)[self.test][self.mode]
        point = next(point for point in scores["at_coverages"] if point["target"] == self.target)
        value: float | None = point[self.field]
        return None if value is None else 100 * value


@dataclass(frozen=True)
class Trained:
    """The result's accuracy on the images that it was trained on, as they are and without dropout."""

    def of(self, run: Run, result: Result, data_dir: Path | None) -> float | None:
        return 100 * _training_accuracy(run, data_dir)


@dataclass(frozen=True)
class Analysed:
    """A figure of the run's analysis, by its name in ``FIGURES``; runs are analysed when first asked."""

    figure: str

    def of(self, run: Run, result: Result, data_dir: Path | None) -> float | None:
        analysis = stored_analysis(run.folder) or analyze(run.folder, data_dir=data_dir)
        return figures(analysis).get(self.figure)


# A table asks many cells of the same run.
_kept: dict[Path, dict[str, Any]] = {}
_kept_training: dict[Path, float] = {}


def _selective(run: Run, data_dir: Path | None) -> dict[str, Any]:
    if run.folder not in _kept:
        _kept[run.folder] = score_run(run.folder, None, (), data_dir, coverage=0.9)["selective"]
    return _kept[run.folder]


def _training_accuracy(run: Run, data_dir: Path | None) -> float:
    if run.folder not in _kept_training:
        data = run.config.data.load(DataFiles(data_dir))
        right = predict(run.load_model(data), data.train).argmax(1) == data.train.y
        _kept_training[run.folder] = float(right.double().mean())
    return _kept_training[run.folder]


@dataclass(frozen=True)
class Setup:
    """A method on a data set: what one or more cells of a table are read from."""

    method: str
    data: str
    arch: str
    settings: tuple[str, ...] = ()
    at: str = ""  # of a sweep: the setting that sets this one apart
    quick: tuple[str, ...] = ()  # settings of --quick that only this method has, beside the table's

    def config(self, seed: int, more: tuple[str, ...] = (), *, quick: bool = False) -> Config:
        """The run with ``seed``; what ``more`` says of plain training, such as its length, is for all of a table."""
        own = (*self.settings, *([self.at] if self.at else []), *(self.quick if quick else ()))
        # A table says how plain training is done; a method whose only recipe has another name is trained so, too.
        names = {field.name for field in fields(method_named(self.method))}
        own = own if "erm" in names else as_training(own)
        # Of two the first finds the bias and is short for a reason.
        plain = "training" if "training" in names else "erm"
        return configure(self.method, self.data, self.arch, seed, [*own, *(as_named(one, plain) for one in more)])


@dataclass(frozen=True)
class Cell:
    """One number of a published table; without a setup it is somebody else's method and only quoted."""

    row: str
    column: str
    published: float | None  # as printed, shares in per cent; None: the paper has no such number
    deviation: float | None = None  # as published
    setup: Setup | None = None
    measure: Measure | None = None
    over: tuple[Setup, ...] = ()  # instead of a setup, several: the cell is the lowest or highest of their means, or
    pick: Literal["lowest", "highest", "mean"] = "highest"  # the mean of them all

    @property
    def setups(self) -> tuple[Setup, ...]:
        return (self.setup,) if self.setup else self.over


def as_training(settings: Sequence[str]) -> tuple[str, ...]:
    """Settings of plain training for a method that calls its recipe ``training``.

    >>> as_training(["erm=adam", "erm.lr=0.1", "data.size=64"])
    ('training=adam', 'training.lr=0.1', 'data.size=64')
    """
    return tuple(as_named(setting, "training") for setting in settings)


def as_named(setting: str, recipe: str) -> str:
    """A setting of plain training for a recipe of another name; any other setting as it is."""
    return f"{recipe}{setting[3:]}" if setting.startswith(("erm=", "erm.")) else setting


def quoted(rows: Mapping[str, Sequence[float | None]], columns: Sequence[str]) -> list[Cell]:
    """Cells of other methods, as published and not run here."""
    return [
        Cell(row, column, value)
        for row, values in rows.items()
        for column, value in zip(columns, values, strict=True)
        if value is not None
    ]


@dataclass(frozen=True)
class Table:
    """A published table, and how ours differs in its making."""

    paper: str
    name: str
    caption: str
    cells: tuple[Cell, ...]
    quick: tuple[str, ...]  # settings of --quick, for a look at whether everything works
    differs: str = ""  # what we do otherwise than the paper, and why

    @property
    def key(self) -> str:
        return f"{self.paper}/{self.name}"

    def setups(self) -> list[Setup]:
        """Every distinct setup, in the order of the cells."""
        return list(dict.fromkeys(setup for cell in self.cells for setup in cell.setups))

    def rows(self, setup: Setup) -> list[str]:
        """The rows that ``setup`` has a cell in."""
        return list(dict.fromkeys(cell.row for cell in self.cells if setup in cell.setups))
