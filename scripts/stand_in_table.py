"""The methods of the papers' tables on photographs that cannot be had here, run on `petscapes` in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from photographs import FROZEN as FREEZING
from photographs import LAST_LAYER, METHODS
from result_files import markdown, over_seeds, read

from unspur.papers.reproduce import TABLES

STOOD_FOR = {  # tables whose data are not at hand: what the column of tables calls them
    "masktune/table1": "MaskTune 1",
    "masktune/table2": "MaskTune 2",
    "ule/table2": "ULE 2",
    "ule/table3": "ULE 3",
    "ule/table4": "ULE 4",
    "ule/table5": "ULE 5",
}
FROZEN, TUNED = "compare-petscapes-frozen", ("compare-petscapes-pixels", "compare-petscapes-tuned")
SCORES = ("worst", "mean")


def stand_in() -> list[str]:
    """For each method of those tables where it stands in them, and its scores with and without a frozen network."""
    heads = _compared(FROZEN)
    tuned = dict(_fine_tuned())  # from another script, MaskTune at 112 pixels and not 96
    for name in TUNED:
        tuned |= _compared(name)
    rows = []
    for method, tables in _methods().items():
        both = (heads.get(method, {}), tuned.get(method, {}))
        scores = [over_seeds(found.get(score, [])) for found in both for score in SCORES]
        rows.append([method, ", ".join(tables), *scores])
    headers = ["method", "in tables", "frozen: worst", "frozen: mean", "all layers: worst", "all layers: mean"]
    return markdown(headers, rows)


def _methods() -> dict[str, list[str]]:
    """The methods that the tables have rows of, in their order, and the tables."""
    found: dict[str, list[str]] = {}
    for key, called in STOOD_FOR.items():
        for setup in TABLES[key].setups():
            if called not in (tables := found.setdefault(setup.method, [])):
                tables.append(called)
    return found


def _compared(name: str) -> dict[str, dict[str, list[float]]]:
    """Scores over seeds, chosen without group labels."""
    (block,) = read(name)["datasets"]
    return {
        row["method"]: {score: [seed[score] for seed in row["chosen"]["none"]] for score in SCORES}
        for row in block["rows"]
    }


def _fine_tuned() -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Scores over seeds of the networks that scripts/photographs.py fine-tuned."""
    known: list[Mapping[str, Any]] = read("photographs")["rows"]
    for called, (method, settings) in METHODS.items():
        rows = [row for row in known if (row["method"], row["set"]) == (called, "petscapes")]
        if settings != FREEZING and method not in LAST_LAYER:
            tests = [row["tests"]["result"]["test"] for row in rows]
            fields = ("worst_group_accuracy", "mean_group_accuracy")
            yield method, {score: [test[name] for test in tests] for score, name in zip(SCORES, fields, strict=True)}
