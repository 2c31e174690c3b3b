"""Tables of the large-learning-rate sweeps in results/large-lr, beside Table 1 of the paper; see make_results.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from unspur.metrics.correlation import rank_correlation
from unspur.papers.large_lr import COLUMNS, DATA, MODELS, TABLE_1, parse

SCORES = ("unbiased accuracy", *COLUMNS)
PRUNED = "pruned accuracy"  # the mean over kappa itself, not over the accuracy of the whole network
LARGEST, EARLY, LOSSES = "max loss ratio", "early loss ratio", "aligned / conflicting loss"
ALSO = (PRUNED, LARGEST, EARLY, LOSSES, "core attribution", "attribution entropy", "training accuracy", "epochs")
PAIRS = (
    ("Figure 12", "unbiased accuracy", LARGEST),
    ("Figure 12", "unbiased accuracy", EARLY),
    ("Figure 26", "core attribution", "CSI"),
)
# Supplement B: mean loss of aligned over that of conflicting samples at a low and at a high rate, of unnamed networks.
SUPPLEMENT_B = {"colored_mnist": (3.9e-3, 3.4e-3), "double_mnist": (9.5e-3, 7.4e-6)}


def published() -> dict[str, tuple[str, str, dict[str, tuple[float, float]]]]:
    """The sweeps of Table 1 by name: data set and model as printed, and the range of each column."""
    names = {model: name for name, model in MODELS.items()}
    return {
        f"{DATA[data]}-{names[model]}": (data, model, dict(zip(("rate", *SCORES), ranges, strict=True)))
        for data, model, ranges in parse(TABLE_1)
    }


def overview(sweeps: Mapping[str, Mapping[str, Any]], score: str) -> Iterator[str]:
    """All sweeps beside Table 1: the lowest and highest mean of one score over usable rates."""
    yield "| sweep | rates | seeds | lowest | highest | published | correlation |"
    yield "| --- |" + " --- |" * 6
    for stem, found in sweeps.items():
        usable = [point for point in found["points"] if point["usable"]]
        own = accuracy_name(usable[0]["scores"]) if score == "unbiased accuracy" else score
        low, *_, high = [point["settings"]["erm.lr"] for point in usable]
        means = sorted((point["scores"][own] for point in usable), key=lambda value: float(value["mean"]))
        theirs = "".join(f"{ranges[score][0]:g} to {ranges[score][1]:g}" for ranges in _published(stem))
        ours = f"{_cell(own, means[0])} | {_cell(own, means[-1])}"
        rank = _signed(found["correlations"]["erm.lr"].get(own))
        yield f"| {stem} | {low} to {high} | {len(found['seeds'])} | {ours} | {theirs} | {rank} |"


def _published(stem: str) -> list[dict[str, tuple[float, float]]]:
    return [ranges for name, (_, _, ranges) in published().items() if stem.startswith(name)]


def table(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    """One sweep: a row a rate, then correlations and what is published."""
    points = [with_pruned_accuracy(point) for point in found["points"]]
    known = [score for score in (*SCORES, "test accuracy", *ALSO) if any(score in p["scores"] for p in points)]
    yield f"| rate | {' | '.join(known)} |"
    yield f"| --- |{' --- |' * len(known)}"
    for point in points:
        ends = [run["status"] for run in point["runs"] if run["status"] != "done"]
        notes = [f"{ends.count(end)} {end}" for end in sorted(set(ends))]
        notes += ["1 seed"] if len(point["runs"]) < len(found["seeds"]) else []
        notes += [] if point["usable"] or ends else ["not usable"]
        rate = ", ".join([point["settings"]["erm.lr"], *notes])
        yield f"| {rate} | {' | '.join(_cell(score, point['scores'].get(score)) for score in known)} |"
    for word, of in (("rate", found["correlations"]["erm.lr"]), ("accuracy", found["with_accuracy"])):
        yield f"| correlation with the {word} | {' | '.join(_signed(of.get(score)) for score in known)} |"
    for ranges in _published(name):
        cells = [f"{ranges[s][0]:g} to {ranges[s][1]:g}" if s in ranges else "" for s in known]
        yield f"| published, {ranges['rate'][0]:g} to {ranges['rate'][1]:g} | {' | '.join(cells)} |"


def compared(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Scores of the runs at usable rates by seeds that all of these rates have, so that no rate counts for more."""
    points = [{run["seed"]: run["scores"] for run in point["runs"]} for point in found["points"] if point["usable"]]
    shared = set.intersection(*(set(point) for point in points)) if points else set()
    return [point[seed] for point in points for seed in sorted(shared)]


def pairs(found: Mapping[str, Any]) -> Iterator[str]:
    """Rank correlations at usable rates that the paper shows as figures of their own."""
    for word, one, other in PAIRS:
        both = [(each[one], each[other]) for each in compared(found) if one in each and other in each]
        if len(both) > 2:
            value = rank_correlation([x for x, _ in both], [y for _, y in both])
            yield f"{word}: rank correlation of {one} with {other} {_signed(value)} over {len(both)} runs.\n"


def mechanism(sweeps: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Figure 12 for every sweep: how the accuracy goes with the largest and the early loss ratio, and their ranges."""
    yield "| sweep | runs | largest ratio | correlation | early ratio | correlation |"
    yield "| --- |" + " --- |" * 5
    for stem, found in sweeps.items():
        runs = [scores for scores in compared(found) if LARGEST in scores]
        if len(runs) > 2:
            cells = [cell for name in (LARGEST, EARLY) for cell in _with_accuracy(runs, name)]
            yield f"| {stem} | {len(runs)} | {' | '.join(cells)} |"


def _with_accuracy(runs: list[Mapping[str, Any]], name: str) -> tuple[str, str]:
    """The range of a score and its rank correlation with the accuracy; nothing where runs do not have it."""
    if any(name not in scores for scores in runs):
        return "", ""
    values = [scores[name] for scores in runs]
    rank = rank_correlation([scores["unbiased accuracy"] for scores in runs], values)
    return f"{min(values):.5f} to {max(values):.5f}", _signed(rank)


def loss_ratios(sweeps: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Supplement B: the mean loss of aligned over that of conflicting samples at the lowest and highest usable rate."""
    yield "| sweep | lowest rate | highest rate | published, low | published, high |"
    yield "| --- |" + " --- |" * 4
    for stem, found in sweeps.items():
        usable = [point["scores"] for point in found["points"] if point["usable"] and LOSSES in point["scores"]]
        if usable:
            ours = [f"{scores[LOSSES]['mean']:.2g}" for scores in (usable[0], usable[-1])]
            theirs = [f"{value:.2g}" for value in SUPPLEMENT_B.get(stem.partition("-")[0], ())] or ["", ""]
            yield f"| {stem} | {' | '.join(ours + theirs)} |"


def every(sweeps: Mapping[str, Mapping[str, Any]], made: Callable[[Mapping[str, Any]], str]) -> Iterator[str]:
    """Every sweep: how it was ``made``, its table, and its figure."""
    for stem, found in sweeps.items():
        yield from (f"## {stem}", "", made(found), "", *table(stem, found), "", *pairs(found))
        yield from (f"![{stem}]({stem}.svg)", "")


def with_pruned_accuracy(point: Mapping[str, Any]) -> dict[str, Any]:
    """A point of a sweep with the mean over kappa and seeds of the accuracy that pruning leaves, where it is known."""
    runs = [run["scores"] for run in point["runs"] if "prunability" in run["scores"]]
    left = [scores["prunability"] * scores[accuracy_name(scores)] for scores in runs]
    more = {PRUNED: {"mean": sum(left) / len(left)}} if left else {}
    return {**point, "scores": {**point["scores"], **more}}


def accuracy_name(scores: Mapping[str, Any]) -> str:
    return "unbiased accuracy" if "unbiased accuracy" in scores else "test accuracy"


def _cell(score: str, value: Mapping[str, Any] | None) -> str:
    if value is None:
        return ""
    return f"{100 * value['mean']:.2f}" if score.endswith("accuracy") else f"{value['mean']:.3g}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"
