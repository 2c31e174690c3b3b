"""What runs have said of a published table: ours beside theirs, joined to what was stored of earlier runs."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unspur.core.files import read_json
from unspur.errors import UnspurError
from unspur.papers.table import Cell, Setup, Table
from unspur.runs.convergence import Ended, usable
from unspur.runs.result import Result

RUN = ("key", "method", "dataset", "arch", "seed", "seconds", "machine", "commit", "sizes")  # what is said of each run


@dataclass(frozen=True)
class Stored:
    """What a table's file knew before: cells that have values, by row and column, and their runs."""

    cells: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    runs: Sequence[Mapping[str, Any]] = ()
    setups: Mapping[str, Setup] = field(default_factory=dict)  # of the runs that would still be made so, by their keys

    @staticmethod
    def read(file: Path, table: Table, settings: tuple[str, ...], *, quick: bool) -> Stored:
        if not file.exists():
            return Stored()
        known = read_json(file)
        cells = {(cell["row"], cell["column"]): cell for cell in known.get("cells", ()) if cell["values"]}
        runs, setups = known.get("runs", ()), {}
        sweeps = {setup for cell in table.cells if len(cell.setups) > 1 for setup in cell.setups}
        for setup in table.setups():
            if setup in sweeps:  # its cells say which of several settings is best, by runs that are here
                continue
            with contextlib.suppress(UnspurError):  # a setting is not for it
                for seed in {run["seed"] for run in runs}:
                    setups[setup.config(seed, settings, quick=quick).key] = setup
        return Stored(cells, runs, setups)

    def values(self, cell: Cell, setup: Setup, again: Container[str]) -> list[float]:
        """What the runs of ``setup`` had said of a cell, one value a run, but for the runs with the keys ``again``."""
        keys = [run["key"] for run in self.runs if self.setups.get(run["key"]) == setup]
        values = self.cells.get((cell.row, cell.column), {}).get("values", [])
        if len(values) != len(keys):  # which value is whose cannot be known
            return []
        return [value for key, value in zip(keys, values, strict=True) if key not in again]


@dataclass(frozen=True)
class Outcome:
    """What the runs of a table have shown so far."""

    table: Table
    stored: Stored = field(default_factory=Stored)
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
        """The stored runs that are not here now, but for those of a setup that has been run with other settings."""
        keys, again = {run["key"] for run in self.done}, {self._label(setup) for setup in self.ended}
        others = [run for run in self.stored.runs if run["key"] not in keys]
        return [run for run in others if run["key"] in self.stored.setups or run.get("setup") not in again]

    def _cell(self, cell: Cell) -> Mapping[str, Any]:
        """What the runs say of a cell, those of other seeds first that are only stored."""
        known = self.stored.cells.get((cell.row, cell.column))
        if known is None or any(setup in self.ended for setup in cell.setups):
            return describe(cell, self._measured(cell), self._unusable(cell))
        return {**known, "published": cell.published, "published_deviation": cell.deviation}

    def _measured(self, cell: Cell) -> dict[Setup, list[float]]:
        keys, now = {run["key"] for run in self.done}, self.values.get(cell, {})
        found = {s: [*self.stored.values(cell, s, keys), *now.get(s, ())] for s in cell.setups}
        return {setup: values for setup, values in found.items() if values}

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
