"""Tables of who finds the minority and of who abstains, from results/mining.json and results/abstaining.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from result_files import made, markdown, over_seeds, read

SETS = {
    "colored_mnist": "Colored MNIST, 1 %",
    "biased_mnist": "Biased MNIST, 1 %",
    "petscapes": "petscapes, frozen features",
}
FINDERS = {
    "nobody": "nobody",
    "suspects": "the audit's suspects",
    "gce": "GCE, DCWP's miner",
    "early_erm": "plain training stopped early, DCWP's other miner",
    "ensemble": "an ensemble of epochs, DCWP's for CIFAR10-C",
    "jtt": "`jtt`, by a short plain training",
    "lff": "`lff`",
    "disent": "`disent`",
    "eiil": "`eiil`",
    "spare": "`spare`",
    "ssa": "`ssa`, which reads validation groups",
    "ula": "`ula`",
    "xrm": "`xrm`, by twins",
    "truth": "the truth",
}


def found() -> list[str]:
    """How well each finds the samples that go against the shortcut, and what one training makes of it."""
    stored, body = read("mining"), []
    for name, called in SETS.items():
        own = _grouped(stored["rows"], name, "finder")
        for finder in sorted(own, key=lambda one: _mean(own[one], "mean_group_accuracy"), reverse=True):
            columns = ("precision", "recall", "mean_group_accuracy", "worst_group_accuracy")
            body.append([called, FINDERS[finder], *(_shown(own[finder], column) for column in columns)])
    headers = ["set", "who finds", "precision", "recall", "mean over groups", "worst group"]
    return [made(stored), "", *markdown(headers, body)]


def abstaining() -> list[str]:
    """What each answers at a target of 90 %, and how wrong it is, also where the shortcut misleads."""
    stored, body = read("abstaining"), []
    for name, called in SETS.items():
        own = _grouped(stored["rows"], name, "method")
        for method in sorted(own, key=lambda one: _mean(own[one], "aurc")):
            against = [row["against"] for row in own[method]]
            everywhere = [_shown(own[method], column) for column in ("coverage", "error", "aurc")]
            body.append([called, f"`{method}`", *everywhere, *(_shown(against, one) for one in ("coverage", "error"))])
    headers = ["set", "method", "answered", "wrong", "AURC", "answered, against", "wrong, against"]
    return [made(stored), "", *markdown(headers, body)]


def _grouped(rows: Sequence[Mapping[str, Any]], name: str, key: str) -> dict[str, list[Mapping[str, Any]]]:
    own = [row for row in rows if row["set"] == name]
    return {value: [row for row in own if row[key] == value] for value in dict.fromkeys(row[key] for row in own)}


def _mean(rows: Sequence[Mapping[str, Any]], key: str) -> float:
    return fmean(row[key] for row in rows)


def _shown(rows: Sequence[Mapping[str, Any]], key: str) -> str:
    """Over seeds; a precision is unknown where nothing was found."""
    return over_seeds([row[key] for row in rows if row[key] is not None])
