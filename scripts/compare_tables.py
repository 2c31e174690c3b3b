"""Tables of `unspur compare`: every method on a set, who finds the minority, and who wins where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, harmonic_mean
from typing import Any

from result_files import made, markdown, read

from unspur.runs.comparison import telling_score

COMPARED = {  # results/NAME.json: what it compares on
    "compare-colored_mnist-mini": "Colored MNIST, 1 %",
    "compare-biased_mnist-mini": "Biased MNIST, 1 %",
    "compare-petscapes-frozen": "petscapes, frozen features",
    "compare-petscapes-tuned": "petscapes, all layers",
    "compare-petscapes-pixels": "petscapes, all layers",
    "compare-mnist_cifar-frozen": "MNIST-CIFAR, frozen features",
    "compare-mnist_cifar-pixels": "MNIST-CIFAR, from scratch",
}
# These have some of the methods alone, so that nobody can be said to win there.
FEW = ("compare-petscapes-tuned", "compare-petscapes-pixels")
CUED = "swap"  # gets a cue, which no other method can be told
READS = ("none", "validation", "training")  # whose group labels a method reads, from none to most
HEADERS = ["method", "reads groups of", "worst, with", "worst, without", "mean, with", "mean, without", "rank", "cost"]


def compared(name: str) -> list[str]:
    """Methods on a data set, the best first, and their mean ranks where there are several seeds."""
    found = read(name)
    (block,) = found["datasets"]
    rows = []
    for row in sorted(_ran(block), key=_by_worst_and_mean, reverse=True):
        scores = [_spread(row[score][choice]) for score in ("worst", "mean") for choice in ("groups", "none")]
        rank = found["ranks"]["none"][row["method"]]
        span = f" ({rank['ci95'][0]:.1f} to {rank['ci95'][1]:.1f})" if rank["ci95"] else ""
        rows.append([row["method"], row["groups"], *scores, f"{rank['rank']:.1f}{span}", f"{row['cost']:.1f}"])
    left_out = [f"- `{row['method']}` is left out: {row['left_out']}" for row in block["rows"] if row["left_out"]]
    return [made(found), "", *markdown(HEADERS, rows), *(["", *left_out] if left_out else [])]


def mined() -> list[str]:
    """How well each method finds samples that go against the shortcut, beside what it reaches."""
    rows = []
    for name, called in COMPARED.items():
        (block,) = read(name)["datasets"]
        score = telling_score(block)
        for row in sorted((row for row in _ran(block) if "mining" in row), key=_found, reverse=True):
            quality = [_spread(row["mining"][part]) for part in ("precision", "recall")]
            rows.append([called, row["method"], *quality, score, _spread(row[score]["none"])])
    return markdown(["set", "method", "precision", "recall", "score", "with what it found"], rows)


def winners() -> list[str]:
    """For each set who is best by what it may know, and what choosing without groups costs."""
    rows = []
    for name, called in COMPARED.items():
        if name in FEW:
            continue
        found = read(name)
        (block,) = found["datasets"]
        score, ran = telling_score(block), _ran(block)
        by_name = {row["method"]: row for row in ran}
        others = [row for row in ran if row["method"] != CUED]
        best = [_best(others, score, reads) for reads in (READS[:1], READS[:2], READS)]
        cost = [row[score]["groups"]["mean"] - row[score]["none"]["mean"] for row in ran if row[score]["groups"]]
        rows.append(
            [
                called,
                score,
                _spread(by_name["erm"][score]["none"]),
                _spread(by_name[CUED][score]["none"]),
                *(f"`{row['method']}` {_spread(row[score]['none'])}" for row in best),
                f"{100 * fmean(cost):.1f}" if found["candidates"] > 1 else "one candidate",
            ]
        )
    headers = [
        "set",
        "score",
        "plain training",
        f"`{CUED}`, with a cue",
        "best without group labels",
        "or with some in validation",
        "or in training",
        "lost by choosing without groups",
    ]
    return markdown(headers, rows)


def _ran(block: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row for row in block["rows"] if row["mean"]["none"]]


def _best(ran: Sequence[Mapping[str, Any]], score: str, reads: Sequence[str]) -> Mapping[str, Any]:
    """The best of the methods that read no more group labels than ``reads``, chosen without."""
    return max((row for row in ran if row["groups"] in reads), key=lambda row: row[score]["none"]["mean"])


def _found(row: Mapping[str, Any]) -> float:
    """The harmonic mean of precision and recall, to sort by."""
    both = [row["mining"][part] for part in ("precision", "recall")]
    return harmonic_mean([part["mean"] if part else 0.0 for part in both])


def _spread(score: Mapping[str, Any] | None) -> str:
    if score is None:
        return ""
    return f"{100 * score['mean']:.1f}" + ("" if score["deviation"] is None else f" ± {100 * score['deviation']:.1f}")


def _by_worst_and_mean(row: Mapping[str, Any]) -> Sequence[float]:
    return [row[score]["none"]["mean"] if row[score]["none"] else 0.0 for score in ("worst", "mean")]
