"""What each method was shown to do here, from results/: methods/shown.json, which `unspur methods` prints and by which
`unspur repair` orders what it tries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from practice_tables import PHOTOGRAPHS
from result_files import read
from result_tables import CLAIMS, SECOND_DIGIT, cells_of, second_digit
from swap_tables import scored

from unspur.methods.shown import KindOfCue

FROZEN = "frozen"  # rows of photographs.json that train a head on features
FORMS = ("", FROZEN, "at a layer")  # of methods in photographs.json; others show what a setting does
HEADS = "photographs, frozen network"
COMPARED = "compare-petscapes-frozen"
SWAPPED = {  # sets of swap.json, by how their names begin: the shortcut, and what the images are
    "Colored MNIST": ("digit's colour", "digits"),
    "Biased MNIST, one square": ("a blue square", "digits"),
    "Biased MNIST, two squares": ("two squares", "digits"),
    "petscapes": ("a background", HEADS),
    "tagged": ("a corner tag", HEADS),
    "isic": ("a coloured patch", HEADS),
}
SHORTCUTS = {"petscapes": "a background", "tagged": "a corner tag", "isic": "a coloured patch"}
CUES: dict[str, KindOfCue] = {  # the kind of cue that an audit finds
    "a blue square": "place",
    "two squares": "place",
    "code in a row": "place",
    "second digit": "place",
    "a background": "place",
    "a corner tag": "place",
    "digit's colour": "scene",
    "colour, always": "scene",
    "a coloured patch": "place",
}


def shown() -> dict[str, list[dict[str, Any]]]:
    """For each method the shortcuts that it was tried on, with the accuracy where they mislead, before and after."""
    found: dict[str, list[dict[str, Any]]] = {}
    for method, entry in [*_digits(), *_photographs(), *_swap()]:
        found.setdefault(method, []).append(entry)
    for method, entry in _compared():
        told = [(other["shortcut"], other["images"]) for other in found.get(method, [])]
        if (entry["shortcut"], entry["images"]) not in told:
            found.setdefault(method, []).append(entry)
    return found


def text() -> str:
    return json.dumps(shown(), indent=1) + "\n"


def _digits() -> Iterator[tuple[str, dict[str, Any]]]:
    for claim in CLAIMS:
        old, new = cells_of(claim)
        yield claim.method, _entry(claim.shortcut, "digits", old["ours"], new["ours"], len(new["values"]), claim.table)
    low, high, _ = second_digit()
    seeds = len(read(f"large-lr/{SECOND_DIGIT}")["seeds"])
    yield "large_lr", _entry("second digit", "digits", low, high, seeds, f"large-lr/{SECOND_DIGIT}")


def _photographs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each method beside the better of two: plain training of the same network, and what its own runs began with.

    Networks are fine-tuned, or their heads alone; a method may see finer images than plain training's.
    """
    scores: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in read("photographs")["rows"]:
        telling = next(iter(PHOTOGRAPHS[row["set"]].values()))
        for stage, tests in row["tests"].items() if row["status"] == "done" else ():
            scores.setdefault((row["set"], row["method"], stage), {})[row["seed"]] = 100 * telling(tests)
    for (on, row, stage), after in scores.items():
        method, _, form = row.partition(", ")
        frozen = form == FROZEN or method.endswith("_last_layer")
        plain = scores.get((on, f"erm, {FROZEN}" if frozen else "erm", "result"), {})
        seeds = sorted(set(plain) & set(after))
        if method != "erm" and stage == "result" and form in FORMS and seeds:
            kind = HEADS if frozen else "photographs"
            began = [plain, scores.get((on, row, "before"), plain)]
            before = max(fmean(values[seed] for seed in seeds) for values in began)
            yield method, _entry(SHORTCUTS[on], kind, before, fmean(after[s] for s in seeds), len(seeds), "photographs")


def _swap() -> Iterator[tuple[str, dict[str, Any]]]:
    """Swap with the audit's cue, where plain training stands beside it."""
    rows = [row for row in read("swap")["rows"] if row["status"] == "done"]
    for name in dict.fromkeys(row["set"] for row in rows):
        test, score, _ = scored(name)[0]
        before, after = (
            [100 * row["tests"][test][score] for row in rows if (row["set"], row["method"]) == (name, method)]
            for method in ("erm", "swap")
        )
        if before and after:
            start = next(start for start in SWAPPED if name.startswith(start))
            shortcut, kind = SWAPPED[start]
            yield "swap", _entry(shortcut, kind, fmean(before), fmean(after), len(after), "swap", name[len(start) :])


def _compared() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every method that trains a head, chosen with group labels where it reads some, and else without any."""
    (compared,) = read(COMPARED)["datasets"]
    worst = {row["method"]: row["worst"]["none" if row["groups"] == "none" else "groups"] for row in compared["rows"]}
    for method, after in worst.items():
        if method != "erm":
            pair = [100 * worst[name]["mean"] for name in ("erm", method)]
            yield method, _entry(SHORTCUTS[compared["dataset"]], HEADS, *pair, after["n"], COMPARED)


def _entry(
    shortcut: str, kind: str, before: float, after: float, seeds: int, file: str, which: str = ""
) -> dict[str, Any]:
    numbers = {"before": round(before, 1), "after": round(after, 1), "seeds": seeds}
    named = {"shortcut": shortcut + which, "cue": CUES[shortcut], "images": kind}
    return {**named, **numbers, "file": f"results/{file}.json"}
