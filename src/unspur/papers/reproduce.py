"""unspur reproduce: run what the data at hand allow, and put our numbers beside the published ones."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unspur.core.files import read_json, writable, write_json
from unspur.core.progress import counting
from unspur.errors import DataMissing, RunFailed, UnspurError, require, unknown
from unspur.papers.dcwp import TABLES as DCWP
from unspur.papers.large_lr import TABLES as LARGE_LR
from unspur.papers.large_lr_figures import TABLES as LARGE_LR_FIGURES
from unspur.papers.masktune import TABLES as MASKTUNE
from unspur.papers.table import Cell, Setup, Table
from unspur.papers.ule import TABLES as ULE
from unspur.papers.ule_spawrious import TABLES as ULE_SPAWRIOUS
from unspur.runs.config import Config
from unspur.runs.convergence import Ended, usable
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.result import ENDED, Result
from unspur.version import commit

TABLES: dict[str, Table] = {
    table.key: table for table in (*MASKTUNE, *ULE, *ULE_SPAWRIOUS, *DCWP, *LARGE_LR, *LARGE_LR_FIGURES)
}


def table_named(key: str) -> Table:
    """The table called PAPER/TABLE, such as masktune/table6."""
    if key not in TABLES:
        raise unknown("table", key, TABLES)
    return TABLES[key]


def parse_seeds(text: str) -> list[int]:
    """Seeds from a list such as 0,1,2."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        raise UnspurError(f"Seeds are whole numbers separated by commas, such as 0,1,2, but got '{text}'.") from None
    return list(dict.fromkeys(seeds))


def reproduce(
    table: Table,
    seeds: Sequence[int],
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    settings: Sequence[str] = (),
    results: Path = Path("results"),
    runs: Path = Path("runs"),
    data_dir: Path | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Any]:
    """Do every run of ``table`` that the data allow, and store what came out after each of them.

    Finished runs are found and not repeated; ``quick`` uses the table's small settings and says so in the result.
    ``only`` names methods, data sets or rows: what does not fit all of them is not run, but read if it has been. What
    the stored table knows of runs that are no longer there stays in it.
    """
    more = (*(table.quick if quick else ()), *settings)
    file = results / (table.key.replace("/", "-") + ("-quick" if quick else "") + ".json")
    _check_settings(file, more)
    command = _command(table, seeds, quick, only, settings)
    made = {"command": _commands(file, command), "quick": quick, "settings": list(more), "seeds": list(seeds)}
    made["commit"] = commit()
    found, wanted = _Found(table, _Stored.read(file)), _wanted(table, only)
    planned: dict[Setup, list[Config]] = {}
    for setup in table.setups():  # before anything is written, since a setting may be wrong
        try:
            configs = [setup.config(seed, more, quick=quick) for seed in seeds]
        except UnspurError:
            if setup in wanted:
                raise
            configs = []  # a setting is not for it
        planned[setup] = configs if setup in wanted else _ended(configs, runs)
    writable(results)
    with counting(f"reproduce {table.key}", sum(map(len, planned.values()))) as advance:
        for setup, configs in planned.items():
            if not configs:
                found.skip(setup, f"left out by --only {' --only '.join(only)}.")
            for config in configs:
                try:
                    result, measured = _measure(table, setup, config, runs, data_dir)
                except (DataMissing, RunFailed) as error:
                    label = found.skip(setup, str(error))
                    if isinstance(error, RunFailed):
                        found.failed.append(label)
                    say(f"Skipped {label}: {error}")
                    break
                if result["status"] == "done":
                    found.add(setup, result, measured, Run.create(runs, config).training_accuracy())
                else:
                    found.diverged(setup, result)
                write_json(file, found.all(made))
                advance(1)
    whole = found.all(made)
    if found.ended:  # else a table that is there may know more
        write_json(file, whole)
    return whole


def _command(table: Table, seeds: Sequence[int], quick: bool, only: Sequence[str], settings: Sequence[str]) -> str:
    """What to type to do this again."""
    words = ["unspur", "reproduce", table.key, *(["--quick"] if quick else []), "--seeds", ",".join(map(str, seeds))]
    for option, values in (("--only", only), ("--set", settings)):
        words += [word for value in values for word in (option, value)]
    return shlex.join(words)


def _commands(file: Path, command: str) -> str:
    """The commands that made the table in ``file``, this one the last."""
    stored = str(read_json(file).get("command", "")) if file.exists() else ""
    earlier = [part for part in stored.split("; then ") if part and part != command]
    return "; then ".join([*earlier, command])


def _check_settings(file: Path, settings: Sequence[str]) -> None:
    """Refuse to replace a stored table by one with other settings."""
    stored = read_json(file) if file.exists() else {"settings": list(settings)}
    others = stored.get("settings") if isinstance(stored, dict) else None
    require(isinstance(others, list), f"{file} is not a table that `unspur reproduce` wrote; move it.")
    if others != list(settings):
        kept = f"with --set {' --set '.join(others)}" if others else "without other settings"
        raise UnspurError(f"{file} holds this table {kept}; move it, or name another folder with --out.")


def _wanted(table: Table, only: Sequence[str]) -> set[Setup]:
    """The setups that have every one of the names in ``only``: their method's, their data set's or a row's."""
    names = {setup: {setup.method, setup.data, *table.rows(setup)} for setup in table.setups()}
    for name in only:
        known = sorted(set().union(*names.values()))
        if name not in known:
            raise unknown(f"method, data set or row of {table.key}", name, known)
    return {setup for setup, own in names.items() if own.issuperset(only)}


def _ended(configs: Sequence[Config], runs: Path) -> list[Config]:
    """Those of the configurations whose runs have ended."""
    results = {config: Run.create(runs, config).result() for config in configs}
    return [config for config, result in results.items() if result and result["status"] in ENDED]


RUN = ("key", "method", "dataset", "arch", "seed", "seconds", "machine", "commit", "sizes")  # what is said of each run


@dataclass(frozen=True)
class _Stored:
    """What a table's file knew before: cells that have values, by row and column, and their runs."""

    cells: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    runs: Sequence[Mapping[str, Any]] = ()

    @staticmethod
    def read(file: Path) -> _Stored:
        if not file.exists():
            return _Stored()
        known = read_json(file)
        cells = {(cell["row"], cell["column"]): cell for cell in known.get("cells", ()) if cell["values"]}
        return _Stored(cells, known.get("runs", ()))


@dataclass(frozen=True)
class _Found:
    """What the runs of a table have shown so far."""

    table: Table
    stored: _Stored = field(default_factory=_Stored)
    values: dict[Cell, dict[Setup, list[float]]] = field(default_factory=dict)
    skipped: dict[Setup, str] = field(default_factory=dict)  # and why
    done: list[dict[str, Any]] = field(default_factory=list)
    ended: dict[Setup, list[Ended]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # what could not be run to its end

    def add(self, setup: Setup, result: Result, measured: Mapping[Cell, float], fitted: float | None) -> None:
        self.ended.setdefault(setup, []).append(Ended(result, fitted))
        for cell, value in measured.items():
            self.values.setdefault(cell, {}).setdefault(setup, []).append(value)
        own = {"at": setup.at} if setup.at else {}
        more = {"setup": self._label(setup), "training_accuracy": fitted}
        self.done.append({name: result.get(name) for name in RUN} | own | more)

    def skip(self, setup: Setup, why: str) -> str:
        """Remember why there is no run of ``setup``; returns what it is called."""
        self.skipped[setup] = why
        return self._label(setup)

    def diverged(self, setup: Setup, result: Result) -> None:
        """Remember a run of ``setup`` that has."""
        self.ended.setdefault(setup, []).append(Ended(result, None))
        self.skipped[setup] = result.get("reason", "")

    def all(self, made: Mapping[str, Any]) -> dict[str, Any]:
        """The whole table as plain values, and how it was ``made``; the commit is that of this reading."""
        earlier = self._earlier()
        return {
            "table": self.table.key,
            "caption": self.table.caption,
            **made,
            "seeds": sorted({*made["seeds"], *(run["seed"] for run in earlier)}),
            "differs": self.table.differs,
            "cells": [self._cell(cell) for cell in self.table.cells],
            "failed": self.failed,
            "skipped": {self._label(setup): why for setup, why in self.skipped.items()},
            "runs": [*earlier, *self.done],
        }

    def _earlier(self) -> list[Mapping[str, Any]]:
        """The stored runs that are not here now, but for those of a setup that has been run again."""
        keys, again = {run["key"] for run in self.done}, {self._label(setup) for setup in self.ended}
        return [run for run in self.stored.runs if run["key"] not in keys and run.get("setup") not in again]

    def _cell(self, cell: Cell) -> Mapping[str, Any]:
        """What the runs say of a cell, or where there are none of it now, what was stored."""
        known = self.stored.cells.get((cell.row, cell.column))
        if known is None or any(setup in self.ended for setup in cell.setups):
            return describe(cell, self.values.get(cell, {}), self._unusable(cell))
        return {**known, "published": cell.published, "published_deviation": cell.deviation}

    def _unusable(self, cell: Cell) -> set[Setup]:
        """The settings of a cell that were skipped, of which a seed diverged, or which did not learn their data.

        A cell that is the lowest or highest value of several settings has them from weak to strong.
        """
        in_order = cell.pick != "mean"
        good = usable({setup: self.ended.get(setup, []) for setup in cell.setups}, in_order=in_order)
        return {setup for setup in cell.setups if setup in self.skipped or setup not in good}

    def _label(self, setup: Setup) -> str:
        at = f", {setup.at}" if setup.at else ""
        return f"{self.table.rows(setup)[0]}: {setup.method} on {setup.data}, {setup.arch}{at}"


def _measure(
    table: Table, setup: Setup, config: Config, runs: Path, data_dir: Path | None
) -> tuple[Result, dict[Cell, float]]:
    """One run of ``setup`` and what the table's cells read from it."""
    result = run(config, runs, data_dir=data_dir, resume=True, progress=True)
    if result["status"] != "done":
        return result, {}
    stored = Run.create(runs, config)
    cells = [cell for cell in table.cells if setup in cell.setups and cell.measure]
    read = {cell: cell.measure.of(stored, result, data_dir) for cell in cells if cell.measure}
    return result, {cell: value for cell, value in read.items() if value is not None}


def describe(cell: Cell, measured: Mapping[Setup, Sequence[float]], unusable: Container[Setup]) -> dict[str, Any]:
    """A cell as plain values: ours beside theirs, or why there is no ours.

    Of a sweep's usable settings the one with the lowest or highest mean is the cell's, and ``at`` says which; ``tried``
    has the values of all. A mean over settings is one seed by seed, and needs them all with the same seeds.
    """
    left_out = any(setup in unusable for setup in cell.setups)
    why = "quoted" if not cell.setups else "skipped" if left_out else "no value"
    sweep = len(cell.setups) > 1  # of a single setting, what there is counts
    means = {s: statistics.mean(values) for s, values in measured.items() if not (sweep and s in unusable)}
    if cell.pick == "mean":
        chosen, counts = None, {len(measured.get(setup, ())) for setup in cell.over}
        values = [statistics.mean(seed) for seed in zip(*measured.values(), strict=True)] if len(counts) == 1 else []
    else:
        chosen = (min if cell.pick == "lowest" else max)(means, key=lambda setup: means[setup], default=None)
        values = list(measured[chosen]) if chosen else []
    return {
        "row": cell.row,
        "column": cell.column,
        "published": cell.published,
        "published_deviation": cell.deviation,
        "ours": statistics.mean(values) if values else None,
        "ours_deviation": statistics.stdev(values) if len(values) > 1 else None,
        "values": values,
        "why_none": None if values else why,
        **({"at": chosen.at} if chosen and chosen.at else {}),
        **({"tried": {s.at: list(values) for s, values in measured.items()}} if sweep else {}),
    }
