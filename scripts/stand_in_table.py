"""The methods of the papers' tables on photographs that cannot be had here, run on `petscapes` in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from photographs import FINE, LAST_LAYER, METHODS
from photographs import FROZEN as FREEZING
from result_files import markdown, over_seeds, read

from unspur.papers.reproduce import TABLES
from unspur.papers.table import Table

# Tables whose data are not at hand, and what they are of.
STOOD_FOR = {
    "masktune/table1": "MaskTune, Table 1: CelebA",
    "masktune/table2": "MaskTune, Table 2: Waterbirds",
    "ule/table2": "ULE, Table 2: Waterbirds",
    "ule/table3": "ULE, Table 3: Waterbirds, from scratch",
    "ule/table4": "ULE, Table 4: CelebA",
    "ule/table5": "ULE, Table 5: Spawrious",
}
FROZEN, TUNED = "compare-petscapes-frozen", ("compare-petscapes-pixels", "compare-petscapes-tuned")
SCORES = ("worst", "mean")
FIELDS = ("worst_group_accuracy", "mean_group_accuracy")
HEADERS = ("method", "frozen: worst", "frozen: mean", "all layers: worst", "all layers: mean", "its ERM: worst")

Scores = Mapping[str, Sequence[float]]  # over seeds


class Tuned(NamedTuple):
    """The scores of a method that trains all layers, and those of plain training in the same series."""

    own: Scores
    plain: Scores


def stand_in() -> list[str]:
    """For each of those tables its methods' scores with and without a frozen network."""
    heads, tuned = _compared(FROZEN), _tuned()
    lines = []
    for key, called in STOOD_FOR.items():
        rows = [_row(method, heads.get(method, {}), tuned.get(method)) for method in _methods(TABLES[key])]
        lines += ["", f"#### {called}", "", *markdown(HEADERS, rows)]
    return lines


def _row(method: str, head: Scores, tuned: Tuned | None) -> list[str]:
    own, plain = tuned or ({}, {})
    beside = "" if method == "erm" else over_seeds(plain.get("worst", []))
    return [method, *(over_seeds(found.get(score, [])) for found in (head, own) for score in SCORES), beside]


def _methods(table: Table) -> list[str]:
    """The methods that a table has rows of, in their order."""
    return list(dict.fromkeys(setup.method for setup in table.setups()))


def _tuned() -> dict[str, Tuned]:
    """Methods that train all layers: of the comparisons, or where these have none, of scripts/photographs.py."""
    found = _fine_tuned()
    for name in TUNED:
        scores = _compared(name)
        found |= {method: Tuned(own, scores["erm"]) for method, own in scores.items()}
    return found


def _compared(name: str) -> dict[str, Scores]:
    """Scores chosen without group labels."""
    (block,) = read(name)["datasets"]
    return {
        row["method"]: {score: [seed[score] for seed in row["chosen"]["none"]] for score in SCORES}
        for row in block["rows"]
    }


def _fine_tuned() -> dict[str, Tuned]:
    """What scripts/photographs.py fine-tuned; what has images of another size stands beside its own first stage."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for row in read("photographs")["rows"]:
        if row["set"] == "petscapes":
            runs.setdefault(row["method"], []).append(row["tests"])
    plain, found = _scores(runs["erm"], "result"), {}
    for called, (method, settings) in METHODS.items():
        if settings != FREEZING and method not in LAST_LAYER:
            own_plain = _scores(runs[called], "before") if method in FINE else plain
            found[method] = Tuned(_scores(runs[called], "result"), own_plain)
    return found


def _scores(tests: Sequence[Mapping[str, Any]], stage: str) -> Scores:
    return {score: [seed[stage]["test"][field] for seed in tests] for score, field in zip(SCORES, FIELDS, strict=True)}
