"""Runs beside each other, a table for each data set."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.context import RunContext, RunsContext
from unspur.report.scores import Scored
from unspur.report.section import Section


@dataclass(frozen=True)
class ComparedRun:
    anchor: str
    label: str
    arch: str
    seed: int
    status: str
    warned: bool
    tests: tuple[Scored, ...]


@dataclass(frozen=True)
class ComparisonTable:
    """The runs on one data set, and the names of its test sets."""

    dataset: str
    names: tuple[str, ...]
    runs: tuple[ComparedRun, ...]


@dataclass(frozen=True)
class Comparison:
    tables: tuple[ComparisonTable, ...]


def view(page: RunsContext) -> Comparison:
    return Comparison(tuple(_table(dataset, runs) for dataset, runs in page.by_data.items()))


def _table(dataset: str, runs: list[RunContext]) -> ComparisonTable:
    names = dict.fromkeys(test.name for run in runs for test in run.tests)
    return ComparisonTable(dataset, tuple(names), tuple(map(_compared, runs)))


def _compared(run: RunContext) -> ComparedRun:
    config = run.run.config
    return ComparedRun(run.anchor, run.label, config.arch.name, config.seed, run.status, bool(run.warnings), run.tests)


def several(page: RunsContext) -> bool:
    return len(page.runs) > 1


COMPARISON = Section("comparison", view, several)
