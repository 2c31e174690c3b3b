"""The table of swap: results/swap.json as lines of Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

from result_files import as_printed, number, read

# What a set is scored by: the test set, the score, and how to call it. Sets are named as in swap.json, by their start.
SCORED = {
    "Colored MNIST": (("unbiased", "accuracy", "colour at random"),),
    "Biased MNIST": (("biased", "accuracy", "squares on the wrong class"),),
    "tagged, before it was": (("test", "accuracy", "all images"),),
    "tagged": (("test", "conflicting_accuracy", "tag of the other class"), ("test", "accuracy", "all images")),
    "isic": (
        ("patch", "accuracy", "melanomas with a coloured disc"),
        ("control", "accuracy", "melanomas with a disc of skin"),
        ("test", "mean_group_accuracy", "mean of groups"),
    ),
    "petscapes": (
        ("test", "worst_group_accuracy", "worst group"),
        ("test", "mean_group_accuracy", "mean of groups"),
    ),
}


def scored(name: str) -> Sequence[tuple[str, str, str]]:
    """What the set ``name`` is scored by."""
    return next(scores for start, scores in SCORED.items() if name.startswith(start))


def swap_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """A row for each set and score: plain training and swap, mean and deviation over seeds, and the audit's cue."""
    rows = []
    for name in sorted({row["set"] for row in found["rows"]}):
        own = [row for row in found["rows"] if row["set"] == name and row["status"] == "done"]
        cues = next((", ".join(f"`{cue}`" for cue in row["cues"]) for row in own if row["cues"]), "none")
        for test, score, called in scored(name):
            cells = [_cell(own, method, test, score) for method in ("erm", "swap")]
            rows.append([name, called, *cells, cues])
    return rows


def _cell(rows: Sequence[Mapping[str, Any]], method: str, test: str, score: str) -> str:
    return _over_seeds([100 * row["tests"][test][score] for row in rows if row["method"] == method])


def _over_seeds(values: Sequence[float]) -> str:
    if not values:
        return ""
    spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{fmean(values):.2f}{spread} ({len(values)})"


def on_top_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """A row for each set and method: on images alone, and on images with swap's copies."""
    rows = []
    for name, method in dict.fromkeys((row["set"], row["method"]) for row in found["rows"]):
        own = [row for row in found["rows"] if (row["set"], row["method"]) == (name, method)]
        cells = [_over_seeds([100 * row["accuracy"] for row in own if row["swap"] is swap]) for swap in (False, True)]
        rows.append([name, f"`{method}`", *cells])
    return rows


def cells_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """A row for each set and what of it is swapped: worst group and mean of groups."""
    rows = []
    for on, swapped in dict.fromkeys((row["set"], row["swapped"]) for row in found["rows"]):
        own = [row for row in found["rows"] if (row["set"], row["swapped"]) == (on, swapped)]
        rows.append([on, swapped, *(_over_seeds([100 * row[score] for row in own]) for score in ("worst", "mean"))])
    return rows


class Beside(NamedTuple):
    """A cell of a reproduced table that stands beside a row of swap."""

    file: str
    row: str
    column: str
    method: str


BESIDE = {
    **{
        f"Colored MNIST, {share}": Beside("dcwp-table1", f"CMNIST, {of}", "DCWP", "DCWP")
        for share, of in {"0.5 %": "0.5 %", "1 %": "1.0 %", "2 %": "2.0 %", "5 %": "5.0 %"}.items()
    },
    "Biased MNIST, one square": Beside("masktune-table6", "MaskTune", "biased", "MaskTune"),
    "Biased MNIST, two squares": Beside("masktune-table5", "3", "accumulative biased", "MaskTune, 3 rounds"),
}


def beside_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """Digits: plain training, swap, and the method of the paper that the set comes from, here and as published."""
    rows = []
    for name, beside in BESIDE.items():
        own = [row for row in found["rows"] if row["set"] == name and row["status"] == "done"]
        ((test, score, _),) = scored(name)
        cell = next(
            cell for cell in read(beside.file)["cells"] if (cell["row"], cell["column"]) == (beside.row, beside.column)
        )
        theirs = f"{number(cell['ours'], cell['ours_deviation'])} ({len(cell['values'])})"
        figures = [_cell(own, method, test, score) for method in ("erm", "swap")]
        rows.append([name, *figures, beside.method, theirs, as_printed(cell["published"])])
    return rows


def selection_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """A row for each rule and set: rank correlation and regret on both kinds of validation images, means over seeds."""
    rows = []
    for name in dict.fromkeys(row["set"] for row in found["rows"]):
        own = [row for row in found["rows"] if row["set"] == name]
        for place, rule in enumerate(own[0]["rules"]):
            cells = []
            for kind in dict.fromkeys(row["validation"] for row in found["rows"]):
                of_kind = [row["rules"][place] for row in own if row["validation"] == kind]
                cells += [f"{fmean(each['rank correlation'] for each in of_kind):+.2f}" if of_kind else ""]
                cells += [f"{fmean(each['regret'] for each in of_kind):.1f}" if of_kind else ""]
            rows.append([name, rule["rule"], *cells])
    return rows
