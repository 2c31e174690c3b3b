"""Tables of the thorough repair's recipe: its parts one by one, and every single method, on held-out sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from result_files import markdown, over_seeds, read

TRIED = ("last layer: copies, L2 by copies, classes alike", "all layers: copies everywhere")  # by the thorough repair
SCORES = {"misled": "conflicting_accuracy", "mean": "mean_group_accuracy"}


def parts() -> list[str]:
    """Each part of the recipe on each set: images whose cue misleads, and the mean over groups."""
    found = read("recipe")
    rows = []
    for part in dict.fromkeys(row["part"] for row in found["parts"]):
        cells = [part]
        for name in found["audits"]:
            own = [row for row in found["parts"] if (row["part"], row["set"]) == (part, name)]
            cells += [over_seeds([row["scores"][score] for row in own]) for score in SCORES.values()]
        rows.append(cells)
    headers = ["trained", *(f"{name}: {score}" for name in found["audits"] for score in SCORES)]
    commits = ", ".join(dict.fromkeys(row["commit"] for row in found["parts"]))
    seeds = ", ".join(map(str, sorted({row["seed"] for row in found["parts"]})))
    return [f"`{found['command']}`; seeds {seeds}; commit {commits}.", "", *markdown(headers, rows)]


def chosen() -> list[str]:
    """Which of each set's models has the higher evidence of a repair, and how good they are."""
    found = read("recipe")
    rows = []
    for name, audit in found["audits"].items():
        for seed in sorted({row["seed"] for row in found["parts"] if row["set"] == name}):
            own = [row for row in found["parts"] if (row["set"], row["seed"]) == (name, seed)]
            ways = {way: _part(own, way) for way in TRIED}
            if None in ways.values():
                continue
            best = max(ways, key=lambda way: ways[way]["evidence"])
            worst = [f"{100 * ways[way]['scores']['worst_group_accuracy']:.1f}" for way in TRIED]
            rows.append([name, audit["shortcut"], seed, *worst, best.partition(":")[0]])
    headers = [
        "set",
        "shortcut",
        "seed",
        *(f"worst group, {way.partition(':')[0]}" for way in TRIED),
        "higher evidence",
    ]
    return markdown(headers, rows)


def singles() -> list[str]:
    """The best methods of each set among those that train a head on frozen features."""
    found = read("recipe")
    rows = []
    for name, block in found["singles"].items():
        ran = [row for row in block["rows"] if row["worst"]["none"]]
        ranked = sorted(ran, key=lambda row: -row["worst"]["none"]["mean"])
        free = [row for row in ranked if row["groups"] == "none"]
        plain = next(row for row in ran if row["method"] == "erm")
        rows.append([name, _named([plain]), _named(free[:3]), _named([r for r in ranked if r["groups"] != "none"][:2])])
    return markdown(["set", "plain", "best three without group labels", "best two with"], rows)


def _part(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    return next((row for row in rows if row["part"] == name), None)


def _named(rows: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"`{row['method']}` {100 * row['worst']['none']['mean']:.1f}" for row in rows)
