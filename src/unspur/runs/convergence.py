"""Which settings of a sweep are usable: those "up to the point of divergence or drastic performance loss".

That is section 4.2 of the large-learning-rate paper, which means a loss of more than 25 points of test accuracy; here
it is training accuracy, since nothing is chosen by test data, and so a rate too low to fit the data in its epochs drops
out as well. A network that gives one answer whatever it is shown is lost too, however frequent that answer is: it is
perfectly prunable and compressible, and would win every column of Table 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NotRequired, TypedDict, TypeVar

from unspur.evaluation.scores import TestScores
from unspur.runs.result import Result
from unspur.train.probe import LOST

K = TypeVar("K")


class Unfinished(TypedDict):
    """What is known of a run that has no result of its own."""

    status: str
    reason: NotRequired[str]
    tests: NotRequired[dict[str, TestScores]]


EndedResult = Result | Unfinished


class Ended(NamedTuple):
    """A run that has ended: what result.json says, and the accuracy on its training samples where that is known."""

    result: EndedResult
    fitted: float | None


def usable(runs: Mapping[K, Sequence[Ended]], *, in_order: bool = False) -> set[K]:
    """The settings all of whose runs are done, give more than one answer, and fit not 25 points worse than the best.

    ``in_order`` says that they go from weak to strong: then none counts beyond the first that fails, even if it ended
    well by luck. Settings that were not run, or whose runs broke off, are not usable, but no failure either.
    """
    fitted = [run.fitted for own in runs.values() for run in own if _learned(run.result) and run.fitted is not None]
    least = max(fitted, default=0.0) - LOST

    def lost(run: Ended) -> bool:
        if run.result["status"] != "done":
            return bool(run.result["status"] == "diverged")
        return not _learned(run.result) or (run.fitted is not None and run.fitted < least)

    done = {key for key, own in runs.items() if own and all(run.result["status"] == "done" for run in own)}
    failures = {key for key, own in runs.items() if any(map(lost, own))}
    good = done - failures
    if not in_order:
        return good
    upwards = itertools.dropwhile(lambda key: key not in good, runs)
    return good & set(itertools.takewhile(lambda key: key not in failures, upwards))


def _learned(result: EndedResult) -> bool:
    tests = result.get("tests", {}).values() if result["status"] == "done" else ()
    return bool(tests) and not all(map(predicts_one_class, tests))


def predicts_one_class(scores: TestScores) -> bool:
    """Whether a model gave the same class to every sample of a test set with more than one.

    Runs of version 0.1 did not store it; their groups show it, unless nothing was right at all: so is a shortcut on
    images where it misleads.

    >>> row = {"n": 1, "ci95": [0, 1], "attributes": {}}
    >>> predicts_one_class({"groups": [{"y": 0, "accuracy": 1.0, **row}, {"y": 1, "accuracy": 0.0, **row}]})
    True
    >>> predicts_one_class({"groups": [{"y": 0, "accuracy": 0.0, **row}, {"y": 1, "accuracy": 0.0, **row}]})
    False
    >>> predicts_one_class({"only_class": None, "groups": [{"y": 0, "accuracy": 1.0}, {"y": 1, "accuracy": 0.0}]})
    False
    """
    if "only_class" in scores:
        return scores["only_class"] is not None
    shares: dict[int, set[float]] = {}
    for group in scores["groups"]:
        shares.setdefault(group["y"], set()).add(group["accuracy"])
    right, wrong = (sum(share == {whole} for share in shares.values()) for whole in (1.0, 0.0))
    return right == 1 and wrong == len(shares) - 1 > 0
