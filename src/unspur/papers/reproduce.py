"""unspur reproduce: run what the data at hand allow, and put our numbers beside the published ones."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unspur.core.files import read_json, writable, write_json
from unspur.core.progress import counting
from unspur.errors import DataMissing, RunFailed, UnspurError, require, unknown
from unspur.papers.dcwp import TABLES as DCWP
from unspur.papers.dcwp_short import TABLES as DCWP_SHORT
from unspur.papers.large_lr import TABLES as LARGE_LR
from unspur.papers.large_lr_figures import TABLES as LARGE_LR_FIGURES
from unspur.papers.masktune import TABLES as MASKTUNE
from unspur.papers.outcome import Outcome, Stored
from unspur.papers.table import Cell, Setup, Table
from unspur.papers.ule import TABLES as ULE
from unspur.papers.ule_spawrious import TABLES as ULE_SPAWRIOUS
from unspur.runs.config import Config
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.machines import say_if_slower
from unspur.runs.result import ENDED, Result
from unspur.version import commit

TABLES: dict[str, Table] = {
    table.key: table for table in (*MASKTUNE, *ULE, *ULE_SPAWRIOUS, *DCWP, *DCWP_SHORT, *LARGE_LR, *LARGE_LR_FIGURES)
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
    the stored table knows of runs that are no longer there stays in it, and other seeds of the same configuration are
    added to them.
    """
    more = (*(table.quick if quick else ()), *settings)
    file = results / (table.key.replace("/", "-") + ("-quick" if quick else "") + ".json")
    _check_settings(file, more)
    command = _command(table, seeds, quick, only, settings)
    made = {"command": _commands(file, command), "quick": quick, "settings": list(more), "seeds": list(seeds)}
    made["commit"] = commit()
    found, wanted = Outcome(table, Stored.read(file, table, more, quick=quick)), _wanted(table, only)
    planned: dict[Setup, list[Config]] = {}
    for setup in table.setups():  # before anything is written, since a setting may be wrong
        try:
            configs = [setup.config(seed, more, quick=quick) for seed in seeds]
        except UnspurError:
            if setup in wanted:
                raise
            configs = []  # a setting is not for it
        planned[setup] = configs if setup in wanted else _ended(configs, runs)
    say_if_slower({config.precision for configs in planned.values() for config in configs}, say)
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
