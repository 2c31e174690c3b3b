"""The tables that make_results.py writes: each function reads files of results/ and returns lines of Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from audit_tables import case_rows, clean_rows, found_rows, missed, other_rows
from cells_table import page as cells_page
from large_lr_tables import SCORES, every, loss_ratios, mechanism, overview, published
from reliability_table import kill_rows, soak_rows, total_rows
from scale_table import enough_cores, far_rows, point_rows
from swap_tables import selection_rows, swap_rows

RESULTS = Path(__file__).parents[1] / "results"


def read(name: str) -> Any:
    """What results/NAME.json holds, or the lines of results/NAME.jsonl."""
    file = RESULTS / f"{name}.json"
    if file.exists():
        return json.loads(file.read_text(encoding="utf-8"))
    return [json.loads(line) for line in file.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]


def sweeps() -> dict[str, dict[str, Any]]:
    return {file.stem: read(f"large-lr/{file.stem}") for file in sorted((RESULTS / "large-lr").glob("*.json"))}


def markdown(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A table; None is an empty cell."""
    lines = [list(headers), ["---"] * len(headers), *rows]
    return ["| " + " | ".join("" if cell is None else str(cell) for cell in line) + " |" for line in lines]


def made(found: Mapping[str, Any]) -> str:
    """How a result was made, as its file says: command, seeds, sizes and commit."""
    rows = found.get("rows", found.get("runs", [found]))
    seeds = found.get("seeds") or sorted({row["seed"] for row in rows if "seed" in row})
    parts = [f"`{found['command']}`"]
    parts += [f"seeds {', '.join(map(str, seeds))}"] if len(seeds) > 1 else [f"seed {seeds[0]}"] if seeds else []
    sizes = {row["sizes"]["train"] for row in rows if row.get("sizes")} or {found.get("training images")}
    parts += [f"{size:,} training images" for size in sizes if size and len(sizes) == 1]
    commits = list(dict.fromkeys(row["commit"] for row in rows if row.get("commit"))) or [found.get("commit")]
    parts += [f"commit {', '.join(commits)}"] if all(commits) else []
    return "; ".join(parts) + "."


def number(value: float | None, deviation: float | None = None) -> str:
    """Per cent with two digits, a share with three.

    >>> number(96.447, 0.289), number(0.8041)
    ('96.45 ± 0.29', '0.804')
    """
    if value is None:
        return ""
    digits = 3 if abs(value) < 2 else 2
    return f"{value:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")


def _as_printed(value: float | None) -> str:
    """A published number, which must not look more precise than it was."""
    return "" if value is None else f"{value:g}"


def _short(value: float) -> str:
    return f"{value:g}" if value == int(value) else f"{value:.1f}"


def reproduced(name: str) -> list[str]:
    """A published table: a row for each of its rows that we measured, ours beside theirs."""
    found = read(name)
    cells = {(cell["row"], cell["column"]): cell for cell in found["cells"] if cell["values"]}
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    body = []
    for row in rows:
        own = [cells.get((row, column), {}) for column in columns]
        numbers = [
            (number(cell.get("ours"), cell.get("ours_deviation")), _as_printed(cell.get("published"))) for cell in own
        ]
        body.append([row, *(text for pair in numbers for text in pair)])
    headers = ["", *(text for column in columns for text in (column, "published"))]
    return [made(found), "", *markdown(headers, body)]


class Claim(NamedTuple):
    """A shortcut on digits that a method repairs: two cells of a table, before and after."""

    method: str
    shortcut: str
    repair: str
    table: str
    before: tuple[str, str]
    after: tuple[str, str]


_BIASED, _COLOURS = "accumulative biased", "CMNIST, 1.0 %"
_CODE, _GREY = "MNIST-SC, tested on MNIST", "ColoredMNIST, tested on MNIST"
CLAIMS = (
    Claim("masktune", "a blue square", "MaskTune", "masktune-table6", ("ERM", "biased"), ("MaskTune", "biased")),
    Claim(
        "masktune", "two squares", "MaskTune, 3 rounds", "masktune-table5", ("ERM, no masking", _BIASED), ("3", _BIASED)
    ),
    Claim("dcwp", "digit's colour", "DCWP", "dcwp-table1", (_COLOURS, "ERM"), (_COLOURS, "DCWP")),
    Claim("ule", "code in a row", "ULE", "ule-table1", (_CODE, "ERM test"), (_CODE, "ULE test")),
    Claim("ule", "colour, always", "ULE", "ule-table1", (_GREY, "ERM test"), (_GREY, "ULE test")),
)
SECOND_DIGIT = "double_mnist-cnn"  # the large learning rates' claim, a sweep


def cells_of(claim: Claim) -> tuple[dict[str, Any], dict[str, Any]]:
    cells = {(cell["row"], cell["column"]): cell for cell in read(claim.table)["cells"]}
    return cells[claim.before], cells[claim.after]


def first_page() -> list[str]:
    """Accuracy before and after, where the shortcut does not help: one line for each paper's main claim."""
    rows = []
    for claim in CLAIMS:
        old, new = cells_of(claim)
        numbers = [f"{old['ours']:.1f} %", f"**{new['ours']:.1f} %**", f"{_short(new['published'])} %"]
        rows.append([claim.shortcut, claim.repair, *numbers])
    low, high, theirs = second_digit()
    rows.append(["second digit", "large learning rate", f"{low:.1f} %", f"**{high:.1f} %**", f"{_short(theirs)} %"])
    return markdown(["shortcut", "repair", "plain training", "repaired", "published"], rows)


def second_digit() -> tuple[float, float, float]:
    """The accuracy at a sweep's lowest and highest usable rate, and the best that Table 1 has."""
    points = [point for point in sweeps()[SECOND_DIGIT]["points"] if point["usable"]]
    low, high = (100 * points[end]["scores"]["unbiased accuracy"]["mean"] for end in (0, -1))
    return low, high, published()[SECOND_DIGIT][2]["unbiased accuracy"][1]


def first_page_made() -> list[str]:
    """How each line of the first page was made."""
    names = [*dict.fromkeys(claim.table for claim in CLAIMS), f"large-lr/{SECOND_DIGIT}"]
    return [f"- {made(read(name))}" for name in names]


def no_harm() -> list[str]:
    found = read("masktune-no-harm")
    rows = [[run["seed"], number(run["erm"]), number(run["masktune"])] for run in found["runs"]]
    rows.append(["mean", *(number(fmean(run[key] for run in found["runs"])) for key in ("erm", "masktune"))])
    return [made(found), "", *markdown(["seed", "ERM", "MaskTune"], rows)]


STAGES = ("erm", "after 1", "after 2", "after 3")


def masktune_tries() -> list[str]:
    found = read("masktune-table5-tries")
    rows = [
        [f"`{run['settings'].replace('--set ', '')}`"]
        + [f"{run[stage]['biased']:.2f} / {run[stage]['original']:.2f}" for stage in STAGES]
        for run in found["runs"]
    ]
    return [made(found), "", *markdown(["settings", "ERM", "round 1", "round 2", "round 3"], rows)]


def two_squares() -> list[str]:
    found = read("masktune-two-squares")
    rows = [
        [stage, *(number(100 * scores[test]) for test in ("biased", "original"))]
        for stage, scores in found["accuracy"].items()
    ]
    return [made(found), "", *markdown(["stage", "biased", "original"], rows)]


def squares() -> list[str]:
    """MaskTune on other squares: accuracy on `biased` after each rule, and how much of the square it hides."""
    lines = read("masktune-squares")
    rules = list(dict.fromkeys(line["rule"] for line in lines))
    rows = []
    for square, seed in dict.fromkeys((line["square"], line["seed"]) for line in lines):
        own = {line["rule"]: line for line in lines if (line["square"], line["seed"]) == (square, seed)}
        before = next(iter(own.values()))["before"]["biased"]
        shown = [
            f"{100 * own[rule]['accuracy']['biased']:.1f} ({100 * own[rule]['square_hidden']:.0f} %)"
            if rule in own
            else None
            for rule in rules
        ]
        rows.append([square, seed, f"{100 * before:.1f}", *shown])
    head = ["square", "seed", "plain", *(rule if "'" in rule else f"`{rule}`" for rule in rules)]
    return ["`python scripts/masktune_squares.py`; commits are in the file.", "", *markdown(head, rows)]


def readings() -> list[str]:
    found = read("masktune-readings")
    kinds = list(dict.fromkeys((row["over"], row["reading"]) for row in found["rows"]))
    rows = []
    for kind in kinds:
        own = [row for row in found["rows"] if (row["over"], row["reading"]) == kind]
        rows.append([*kind, *(number(100 * fmean(r[key] for r in own)) for key in ("square_hidden", "image_hidden"))])
    return [made(found), "", *markdown(["mean over", "order", "square hidden", "image hidden"], rows)]


def dcwp_tries() -> list[str]:
    found = read("dcwp-table1-tries")
    keys = ("erm", "pruned", "result", "kept", "mined", "precision", "recall")
    rows = [
        [
            f"`{row['settings']}`",
            row["chosen_by"],
            row["seed"],
            *(number(row[k]) if k != "mined" else row[k] for k in keys),
        ]
        for row in found["rows"]
    ]
    headers = ["settings", "chosen by", "seed", "ERM", "pruned", "result", "kept", "mined", "precision", "recall"]
    return [made(found), "", *markdown(headers, rows)]


def dcwp_masks() -> list[str]:
    rows = [
        [line["config"]["data"]["conflict_count"] or f"{100 * line['config']['data']['conflict']:g} %"]
        + [line["start"], line["penalise"], f"{line.get('up', 80.0):g}"]
        + [number(line[key]) for key in ("kept", "val_mined_loss", "val_mined_accuracy", "val_other_accuracy")]
        for line in read("dcwp-masks")
    ]
    headers = [
        "conflicting",
        "start",
        "penalised",
        "lambda_up",
        "kept",
        "mined loss",
        "mined accuracy",
        "other accuracy",
    ]
    return [
        "`python scripts/dcwp_masks.py RUN`; commits and configurations are in the file.",
        "",
        *markdown(headers, rows),
    ]


def ule_trials() -> list[str]:
    """Accuracy of each trial on held-out training images; a trial's name says all of its settings."""
    trials: dict[str, dict[str, str]] = {}
    for line in read("ule-trials"):
        method, _, rest = line["trial"].partition(f" {line['data']} ")
        model = line["model"]
        label = f"{method} {rest.replace(' seed=0', '')}"
        trials.setdefault(label, {})[line["data"]] = f"{100 * model['with']:.1f} / {100 * model['without']:.1f}"
    rows = [[f"`{label}`", own.get("mnist_sc"), own.get("colored_mnist")] for label, own in trials.items()]
    command = "`python scripts/ule_trials.py [--base mnist --images 55000 --epochs 1] --only TEXT`"
    return [f"{command}; seed 0; commits are in the file.", "", *markdown(["trial", "code", "colours"], rows)]


def ule_effect() -> list[str]:
    found: dict[str, list[dict[str, float]]] = {}
    for line in read("ule-digits"):
        for stages in line["effect"].values():
            found.setdefault(line["what"], []).append(stages["result"])
    rows = [
        [
            what,
            len(own),
            f"{100 * fmean(one['flipped'] for one in own):.1f} %",
            f"{fmean(one['logit'] for one in own):.1f}",
        ]
        for what, own in sorted(found.items())
    ]
    return [
        "`python scripts/ule_digits.py`; commits are in the file.",
        "",
        *markdown(["network", "seeds", "changed", "lead lost"], rows),
    ]


def ule_last_layer() -> list[str]:
    found = read("ule-last-layer")
    keys = ("worst_group_accuracy", "mean_group_accuracy", "aligned_accuracy", "conflicting_accuracy")
    rows = [
        [name, *(f"{100 * own[key][0]:.1f} ± {100 * own[key][1]:.1f}" for key in keys)]
        for name, own in found["summary"].items()
    ]
    return [made(found), "", *markdown(["", "worst group", "mean of groups", "aligned", "conflicting"], rows)]


def large_lr_table2() -> list[str]:
    """Of each row the highest means, and the setting that the accuracy was reached at."""
    found = read("large_lr-table2-colored_mnist")
    cells = {(cell["row"], cell["column"]): cell for cell in found["cells"] if cell["values"]}
    rows = []
    for row in dict.fromkeys(row for row, _ in cells):
        best = [cells[row, f"{column} max"] for column in ("Test Acc.", "Prunability", "Avg. CSI")]
        numbers = [(number(cell["ours"], cell["ours_deviation"]), _as_printed(cell["published"])) for cell in best]
        rows.append([row.partition(", ")[2], f"`{best[0]['at']}`", *(text for pair in numbers for text in pair)])
    headers = ["varied", "best at", "accuracy", "published", "prunability", "published", "CSI", "published"]
    return [made(found), "", *markdown(headers, rows)]


def photographs() -> list[str]:
    """Every method on every set of photographs; a row that has a model before the repair shows it, too."""
    found = read("photographs")
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in found["rows"]:
        cells.setdefault((row["method"], row["set"]), []).append(row)
    methods = list(dict.fromkeys(method for method, _ in cells))
    body = [
        [method, *(text for on in PHOTOGRAPHS for text in _photograph(on, cells.get((method, on), [])))]
        for method in methods
    ]
    headers = ["method", *(f"{on}: {name}" for on, scores in PHOTOGRAPHS.items() for name in scores)]
    return [made(found), "", *markdown(headers, body)]


PHOTOGRAPHS = {  # set: heading of a column, the test set and the score that it shows
    "petscapes": {"worst group": ("test", "worst_group_accuracy"), "mean": ("test", "mean_group_accuracy")},
    "tagged": {"misled": ("test", "conflicting_accuracy"), "mean": ("test", "mean_group_accuracy")},
    "isic": {"skin disc": ("control", "accuracy"), "coloured disc": ("patch", "accuracy")},
}


def _photograph(on: str, rows: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """The scores of one method on one set: after the repair, with the model before it in brackets, over seeds."""
    texts: list[str | None] = []
    for test, score in PHOTOGRAPHS[on].values():
        values = [100 * row["tests"]["result"][test][score] for row in rows if row["status"] == "done"]
        before = [100 * row["tests"]["before"][test][score] for row in rows if "before" in row["tests"]]
        if not values:
            texts.append(rows[0]["status"] if rows else None)
            continue
        text = f"{fmean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")
        texts.append(text + (f" ({fmean(before):.1f})" if before else ""))
    return texts


def swap() -> list[str]:
    """Swap with the audit's cue, beside plain training."""
    found = read("swap")
    headers = ["set", "accuracy", "plain training (seeds)", "swap (seeds)", "cue, by the audit"]
    return [made(found), "", *markdown(headers, swap_rows(found))]


def swap_selection() -> list[str]:
    """How well rules without group labels rank models by their true worst group."""
    found = read("swap-selection")
    kinds = dict.fromkeys(row["validation"] for row in found["rows"])
    headers = ["set", "rule", *(f"{name}, {kind}" for kind in kinds for name in ("correlation", "regret"))]
    models = len(found["rows"][0]["models"])
    return [f"{made(found)} {models} models a seed.", "", *markdown(headers, selection_rows(found))]


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


def compared(name: str) -> list[str]:
    """Methods on a data set, the best first, and their mean ranks where there are several seeds."""
    found = read(name)
    (block,) = found["datasets"]
    rows = []
    for row in sorted((row for row in block["rows"] if row["mean"]["none"]), key=_by_worst_and_mean, reverse=True):
        scores = [row[score][choice] for score in ("worst", "mean") for choice in ("groups", "none")]
        rank = found["ranks"]["none"][row["method"]]
        span = f" ({rank['ci95'][0]:.1f} to {rank['ci95'][1]:.1f})" if rank["ci95"] else ""
        spread = [
            f"{100 * s['mean']:.1f}" + ("" if s["deviation"] is None else f" ± {100 * s['deviation']:.1f}")
            for s in scores
        ]
        rows.append([row["method"], row["groups"], *spread, f"{rank['rank']:.1f}{span}", f"{row['cost']:.1f}"])
    headers = [
        "method",
        "reads groups of",
        "worst, with",
        "worst, without",
        "mean, with",
        "mean, without",
        "rank",
        "cost",
    ]
    left_out = [f"- `{row['method']}` is left out: {row['left_out']}" for row in block["rows"] if row["left_out"]]
    return [made(found), "", *markdown(headers, rows), *(["", *left_out] if left_out else [])]


def _by_worst_and_mean(row: Mapping[str, Any]) -> list[float]:
    return [row[score]["none"]["mean"] if row[score]["none"] else 0.0 for score in ("worst", "mean")]


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


TABLES: dict[str, Callable[[], list[str]]] = {
    "reliability": reliability,
    "reliability-kills": reliability_kills,
    "reliability-soak": reliability_soak,
    "abstention": abstention,
    "scale-points": scale_points,
    "scale-costs": scale_costs,
    "scale-far": scale_far,
    "first-page": first_page,
    "first-page-made": first_page_made,
    "compare-colored_mnist-mini": lambda: compared("compare-colored_mnist-mini"),
    "masktune-no-harm": no_harm,
    "masktune-table5-tries": masktune_tries,
    "masktune-two-squares": two_squares,
    "masktune-readings": readings,
    "dcwp-table1-tries": dcwp_tries,
    "dcwp-masks": dcwp_masks,
    "ule-trials": ule_trials,
    "ule-digits": ule_effect,
    "ule-last-layer": ule_last_layer,
    "photographs": photographs,
    "audit-found": audit_found,
    "audit-clean": audit_clean,
    "audit-missed": lambda: missed(read("audit-benchmark")),
    "audit-others": audit_others,
    "audit-cases": audit_cases,
    "swap": swap,
    "swap-selection": swap_selection,
    "large_lr-table2-colored_mnist": large_lr_table2,
    "large-lr": lambda: [line for score in SCORES for line in ("", f"### {score}", "", *overview(sweeps(), score))],
    "large-lr-accuracy": lambda: list(overview(sweeps(), SCORES[0])),
    "cells": cells_page,
    "masktune-squares": squares,
    "large-lr-mechanism": lambda: list(mechanism(sweeps())),
    "large-lr-losses": lambda: list(loss_ratios(sweeps())),
    "large-lr-sweeps": lambda: list(every(sweeps(), made)),
}
