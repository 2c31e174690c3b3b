"""Tables of the large-learning-rate sweeps in results/large-lr, beside Table 1 of the paper; see make_results.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from unspur.metrics.correlation import rank_correlation
from unspur.papers.large_lr import COLUMNS, DATA, MODELS, TABLE_1, parse

SCORES = ("unbiased accuracy", *COLUMNS)
PRUNED = "pruned accuracy"  # the mean over kappa itself, not over the accuracy of the whole network
ALSO = (PRUNED, "max loss ratio", "core attribution", "attribution entropy", "training accuracy", "epochs")
PAIRS = (
    ("Figure 12", "unbiased accuracy", "max loss ratio"),
    ("Figure 26", "core attribution", "CSI"),
)


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


def pairs(found: Mapping[str, Any]) -> Iterator[str]:
    """Rank correlations over all runs at usable rates that the paper shows as figures of their own."""
    scores = [run["scores"] for point in found["points"] if point["usable"] for run in point["runs"]]
    for word, one, other in PAIRS:
        both = [(each[one], each[other]) for each in scores if one in each and other in each]
        if len(both) > 2:
            value = rank_correlation([x for x, _ in both], [y for _, y in both])
            yield f"{word}: rank correlation of {one} with {other} {_signed(value)} over {len(both)} runs.\n"


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
