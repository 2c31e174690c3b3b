"""The tables of the audit's own test: results/audit-benchmark.jsonl and audit-others.jsonl as rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from audit_plants import FRESH, HELD_OUT

Line = dict[str, Any]
HELD_BASES = ("plane_ship", "deer_horse", "isic")
PARTS = ("held out", "tuned", "saved as JPEG", "background")
ACCUSED = ("leaks", "leans")
ANY_CHANGE = "decoded"  # the family that any change after decoding shows in


def part_of(line: Line) -> str:
    """Which part of the table a planted case belongs to."""
    if line["kind"] == "background":
        return "background"
    if line["base"].endswith(" jpg"):
        return "saved as JPEG"
    unseen = line["kind"] in HELD_OUT or line["kind"] in FRESH
    return "held out" if unseen and line["base"] in HELD_BASES else "tuned"


def share(some: int, of: int) -> str:
    """A count and its share; without any, nothing.

    >>> share(19, 20), share(0, 0)
    ('19 of 20 (95 %)', '')
    """
    return f"{some} of {of} ({100 * some / of:.0f} %)" if of else ""


def found_rows(lines: Sequence[Line]) -> list[list[str]]:
    """Detection, localisation and cost by part and conflict."""
    rows = []
    for part in PARTS:
        for conflict in (0.0, 0.01, 0.05, 0.2):
            own = [line for line in lines if line["kind"] != "none" and part_of(line) == part]
            own = [line for line in own if line["conflict"] == conflict]
            if not own:
                continue
            found = [line for line in own if line["found"]]
            placed = [line for line in found if line["localised"] is not None]
            named = [line for line in found if line["named"]]
            rows.append(
                [
                    part,
                    f"{100 * conflict:.0f} %",
                    share(len(found), len(own)),
                    share(sum(_otherwise(line) for line in found), len(own)) if part != "background" else "",
                    share(sum(line["localised"] for line in placed), len(placed)),
                    share(len(named), len(found)),
                    f"{median(line['processor'] for line in own):.0f} s",
                ]
            )
    return rows


def _otherwise(line: Line) -> bool:
    """Whether a leak was found beside the trace that any change after decoding leaves."""
    return any(grade == "leaks" and family != ANY_CHANGE for grade, family, *_ in line["findings"])


def clean_rows(lines: Sequence[Line]) -> list[list[str]]:
    """Verdicts on sets without a plant."""
    groups = {"pairs of CIFAR-10 (JPEG) classes": "cifar", "pairs of digits": "digits", "pets, skin lesions": ""}
    rows = []
    for name, start in groups.items():
        own = [line for line in lines if line["kind"] == "none"]
        own = [
            line
            for line in own
            if (line["base"].startswith(start) if start else line["base"].split()[0] in ("pets", "isic"))
        ]
        if own:
            verdicts = [line["verdict"] for line in own]
            accused = sum(verdict in ACCUSED for verdict in verdicts)
            rows.append([name, len(own), accused, verdicts.count("context"), verdicts.count("clean")])
    return [[str(cell) for cell in row] for row in rows]


def missed(lines: Sequence[Line]) -> list[str]:
    """Sentences: what was missed, which places were wrong, and which clean sets were accused."""
    planted = [line for line in lines if line["kind"] != "none"]
    said = [
        f"Missed, {part}: " + _names([line for line in planted if part_of(line) == part and not line["found"]])
        for part in PARTS
        if any(part_of(line) == part for line in planted)
    ]
    said.append(
        "Found at another place: " + _names([line for line in planted if line["localised"] is False and line["found"]])
    )
    accused = [line["base"] for line in lines if line["kind"] == "none" and line["verdict"] in ACCUSED]
    said.append("Clean sets accused: " + (", ".join(accused) or "none") + ".")
    return [f"- {sentence}" for sentence in said]


def _names(lines: Sequence[Line]) -> str:
    """Kinds with the sets and conflicts on which it happened."""
    by_kind: dict[str, list[str]] = {}
    for line in lines:
        by_kind.setdefault(line["kind"], []).append(
            f"{line['base'].removesuffix(' jpg')} {100 * line['conflict']:.0f} %"
        )
    return "; ".join(f"{kind} ({', '.join(sets)})" for kind, sets in by_kind.items()) + "." if by_kind else "none."


def other_rows(lines: Sequence[Line], ours: Sequence[Line]) -> list[list[str]]:
    """Other tools and the audit on the same sets."""
    rows = []
    for tool in dict.fromkeys(line["tool"] for line in lines):
        own = [line for line in lines if line["tool"] == tool]
        judged = [line for line in own if "found" in line]
        if not judged:
            rows.append([tool, f"not run: {own[0]['problem']}", "", ""])
            continue
        rows.append([tool, *_counts(judged), f"{median(line['processor'] for line in judged):.0f} s"])
    sets = {(line["base"], line["kind"], line["conflict"]) for line in lines if line.get("base")}
    same = [line for line in ours if (line["base"], line["kind"], line["conflict"]) in sets]
    if same:
        rows.append(["unspur audit", *_counts(same), f"{median(line['processor'] for line in same):.0f} s"])
    return rows


def _counts(lines: Sequence[Line]) -> list[str]:
    planted, clean = ([line for line in lines if (line["kind"] != "none") is wanted] for wanted in (True, False))
    return [share(sum(line["found"] for line in part), len(part)) for part in (planted, clean)]


def case_rows(cases: Sequence[Line]) -> list[list[str]]:
    """Real sets, a line for each leak and context; a set without any has one line."""
    rows = []
    for case in cases:
        first = [case["case"], f"{case['images']:,}", case["verdict"]]
        shown = [finding for finding in case["findings"] if finding["grade"] != "informative"]
        if not shown:
            rows.append([*first, "", "", "", ""])
        for finding in shown:
            follows = finding["reliance"]
            shares = [f"{100 * follows[key]:.0f} %" for key in ("follows_cue", "control")] if follows else ["", ""]
            rows.append([*first, finding["what"], f"{finding['tells_label']:.2f}", *shares])
            first = ["", "", ""]
    return rows
