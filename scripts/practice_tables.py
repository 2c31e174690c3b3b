"""Tables of what works on photographs: methods compared, audits, repairs, labels, and how reliable it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from audit_tables import case_rows, clean_rows, found_rows, other_rows
from photographs import METHODS, TRIED
from reliability_table import kill_rows, soak_rows, total_rows
from result_files import RESULTS, made, markdown, over_seeds, read
from scale_table import enough_cores, far_rows, point_rows
from swap_tables import beside_rows, cells_rows, on_top_rows, selection_rows, swap_rows


def photographs() -> list[str]:
    """Every method on every set of photographs; a row that has a model before the repair shows it, too."""
    found, swapped = read("photographs"), read("swap")
    rows = [row for row in found["rows"] if row["method"] in METHODS]
    swaps = [row for row in swapped["rows"] if row["method"] == "swap" and row["set"] in PHOTOGRAPHS]
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in [*rows, *({**row, "tests": {"before": row["before"], "result": row["tests"]}} for row in swaps)]:
        cells.setdefault((row["method"], row["set"]), []).append(row)
    body = [
        [method, *(text for on in PHOTOGRAPHS for text in _photograph(on, cells.get((method, on), [])))]
        for method in (*METHODS, "swap")
    ]
    headers = ["method", *(f"{on}: {name}" for on, scores in PHOTOGRAPHS.items() for name in scores)]
    longest = max(row["seconds"] for row in rows) / 60
    lines = [made({**found, "rows": rows}), f"`swap`: {made({**swapped, 'rows': swaps})}"]
    lines.append(f"One thread a run, other runs beside it; the longest took {longest:.0f} minutes.")
    return [*lines, "", *markdown(headers, body)]


def photographs_tried() -> list[str]:
    """What was tried on the corner tag, with one seed, beside the defaults."""
    found = read("photographs")
    of_seed = {row["method"]: row for row in found["rows"] if (row["set"], row["seed"]) == ("tagged", 0)}
    rows = [of_seed[name] for name in ("erm", "masktune", "dcwp", *TRIED) if name in of_seed]
    body = [
        [row["method"], *_photograph("tagged", [row]), f"{100 * row['kept']:.1f}" if "kept" in row else None]
        for row in rows
    ]
    tried = {"command": f"{found['command']} --sets tagged --seeds 0 --methods tried", "rows": rows}
    return [made(tried), "", *markdown(["method", *PHOTOGRAPHS["tagged"], "weights kept (%)"], body)]


Tests = Mapping[str, Mapping[str, float]]  # of a model: its scores by test set


def _score(test: str, name: str) -> Callable[[Tests], float]:
    return lambda tests: tests[test][name]


def _isic_groups(tests: Tests) -> tuple[float, float]:
    """Worst group and mean of four: test melanomas have no patch, so that those with a disc are the fourth group."""
    three, fourth = tests["test"], tests["patch"]["accuracy"]
    return min(three["worst_group_accuracy"], fourth), (3 * three["mean_group_accuracy"] + fourth) / 4


PHOTOGRAPHS: dict[str, dict[str, Callable[[Tests], float]]] = {  # set: heading of a column, and what it shows
    "petscapes": {"worst group": _score("test", "worst_group_accuracy"), "mean": _score("test", "mean_group_accuracy")},
    "tagged": {"misled": _score("test", "conflicting_accuracy"), "mean": _score("test", "mean_group_accuracy")},
    "isic": {
        "worst group": lambda tests: _isic_groups(tests)[0],
        "mean": lambda tests: _isic_groups(tests)[1],
        "skin disc": _score("control", "accuracy"),
        "coloured disc": _score("patch", "accuracy"),
    },
}


def _photograph(on: str, rows: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """The scores of one method on one set: after the repair, with the model before it in brackets, over seeds."""
    texts: list[str | None] = []
    for score in PHOTOGRAPHS[on].values():
        values = [score(row["tests"]["result"]) for row in rows if row["status"] == "done"]
        before = [score(row["tests"]["before"]) for row in rows if "before" in row["tests"]]
        if not values:
            texts.append(rows[0]["status"] if rows else None)
            continue
        texts.append(over_seeds(values) + (f" ({100 * fmean(before):.1f})" if before else ""))
    return texts


SUSPECTED = (("all", "precision"), ("all", "recall"), ("surest", "recall"))  # of suspects.json


def audit_suspects() -> list[str]:
    """What an audit's suspects are worth on sets whose attributes are known."""
    found = read("suspects")
    body = [
        [row["set"], row["verdict"], row["sizes"]["train"], row["exceptions"], row["suspects"]]
        + [over_seeds([row[which][part]]) for which, part in SUSPECTED]
        for row in found["rows"]
    ]
    headers = ["set", "verdict", "images", "exceptions", "suspects", "precision", "recall", "right among the surest"]
    return [made(found), "", *markdown(headers, body)]


def swap() -> list[str]:
    """Swap with the audit's cue, beside plain training."""
    found = read("swap")
    headers = ["set", "accuracy", "plain training (seeds)", "swap (seeds)", "cue, by the audit"]
    return [made(found), "", *markdown(headers, swap_rows(found))]


def swap_beside() -> list[str]:
    """Swap on digits beside the papers' methods, here and as published."""
    headers = ["set", "plain training (seeds)", "swap (seeds)", "another method", "here (seeds)", "as published"]
    return markdown(headers, beside_rows(read("swap")))


def swap_on_top() -> list[str]:
    """Other methods on swap's copies."""
    found = read("swap-on-top")
    headers = ["shortcut", "method", "on images (seeds)", "on images and copies (seeds)"]
    return [made(found), "", *markdown(headers, on_top_rows(found))]


def swap_cells() -> list[str]:
    """How much of the leak map is swapped, and with which edges."""
    found = read("swap-cells")
    headers = ["set", "swapped", "worst group (seeds)", "mean of groups (seeds)"]
    return [made(found), "", *markdown(headers, cells_rows(found))]


def swap_selection() -> list[str]:
    """How well rules without group labels rank models by their true worst group."""
    found = read("swap-selection")
    kinds = dict.fromkeys(row["validation"] for row in found["rows"])
    headers = ["set", "rule", *(f"{name}, {kind}" for kind in kinds for name in ("correlation", "regret"))]
    models = len(found["rows"][0]["models"])
    return [f"{made(found)} {models} models a seed.", "", *markdown(headers, selection_rows(found))]


def repair_no_harm() -> list[str]:
    """Sets without a planted shortcut: what a repair does to them."""
    found = read("no-harm")
    rows = []
    for row in found["rows"]:
        kept = row["chosen"] is None
        figures = [f"{100 * row[when]:.1f}" for when in ("before", "after")]
        tried = ", ".join(each["name"] for each in row["tried"] if each["status"] == "done") or "nothing"
        rows.append([row["case"], row["verdict"], tried, "the model itself" if kept else row["chosen"], *figures])
    headers = ("set", "audit", "tried", "kept", "accuracy before", "after")
    return [made(found), "", *markdown(headers, rows)]


def audit_found() -> list[str]:
    """The audit's own test: how many planted shortcuts it finds, where, and at which cost."""
    lines = read("audit-benchmark")
    commits = ", ".join(dict.fromkeys(line["commit"] for line in lines))
    said = f"`python benchmarks/audit.py run`; {len(lines)} cases; seed 2; commit {commits}."
    headers = ["part", "conflict", "found", "by other traces", "localised", "named", "processor time"]
    return [said, "", *markdown(headers, found_rows(lines))]


def audit_clean() -> list[str]:
    """The audit's own test: verdicts on sets without a plant."""
    return markdown(["clean sets", "count", "accused", "context", "clean"], clean_rows(read("audit-benchmark")))


def audit_cases() -> list[str]:
    """Real sets: verdict, and of each leak or context how well it tells labels and how far the model follows."""
    found = read("audit-cases")
    commits = ", ".join(dict.fromkeys(row["commit"] for row in found["rows"]))
    headers = ["set", "images", "verdict", "what", "tells the label", "follows the cue", "control"]
    return [f"`{found['command']}`; commit {commits}.", "", *markdown(headers, case_rows(found["rows"]))]


def audit_others() -> list[str]:
    """Other tools on some of the same sets."""
    said = "`python benchmarks/audit.py others`; conflict 5 %, seed 2."
    if not (RESULTS / "audit-others.jsonl").exists():
        return [f"Not run yet: {said}"]
    rows = other_rows(read("audit-others"), read("audit-benchmark"))
    return [said, "", *markdown(["tool", "planted, found", "clean, accused", "processor time"], rows)]


def reliability() -> list[str]:
    """What was tried, all together, and at which commits."""
    lines = read("reliability")
    commits = ", ".join(dict.fromkeys(line["commit"] for line in lines if line["commit"]))
    return [f"Commit {commits}.", "", *markdown(["hunt", "tried", "went well", "files"], total_rows(lines))]


def reliability_kills() -> list[str]:
    return markdown(["what", "operations", "kills", "went well", "files"], kill_rows(read("reliability")))


def reliability_soak() -> list[str]:
    headers = ["minutes", "runs", "kills", "files equal", "equal on Ray", "rounds", "open files", "memory"]
    return markdown(headers, soak_rows(read("reliability")))


def abstention() -> list[str]:
    found = read("abstention")
    tests = {"original": "no squares", "biased": "squares on the wrong class"}
    headers = (
        "chosen on",
        "images",
        "to be answered",
        "answered",
        "error promised",
        "error",
        "sets hold",
        "labels a set",
    )
    rows = []
    for row in found["rows"]:
        rule = "images and swapped cues" if row["audit"] else "images"
        pairs = [_percent(row[which][what]) for what in ("answered", "error") for which in ("promised", "came")]
        rows.append([rule, tests[row["test"]], *pairs, _percent(row["sets_hold"]), f"{row['set_size']:.2f}"])
    return [f"{made(found)} The model: `{found['trained']}`.", "", *markdown(headers, rows)]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def scale_points() -> list[str]:
    found = read("scale")
    how = f"{made(found)} {found['images']:,} images, {found['cores']} cores, load {found['load']:g} when it began."
    if found["load"] > found["cores"] / 4:
        how += " Other work had the cores at that time, so that the ratios say little of the formula."
    headers = ("what", "processes", "images a second", "computed", "ratio")
    return [how, "", *markdown(headers, point_rows(found))]


def scale_costs() -> list[str]:
    found = read("scale")
    parts = {
        "decoding `d`": found["decode"],
        "the model `m`": found["model"],
        "listing and handing out, in one process": found["hand_out"],
        "writing a row, in the same process": found["write"],
    }
    rows = ([name, f"{1000 * cost:.3f}"] for name, cost in parts.items())
    return markdown(("for an image", "milliseconds of a core"), rows)


def scale_far() -> list[str]:
    found = read("scale")
    headers = ("images", "cores", "decoding", "model", "one process", "in all", "what takes longest")
    end = f"From {enough_cores(found):,} cores on the one process is what takes longest."
    return [*markdown(headers, far_rows(found)), "", end]
