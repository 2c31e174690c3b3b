"""Which settings of a sweep are usable: those "up to the point of divergence or drastic performance loss".

That is section 4.2 of the large-learning-rate paper, which means a loss of more than 25 points of test accuracy; here
it is training accuracy, since nothing is chosen by test data, and so a rate too low to fit the data in its epochs drops
out as well. A network that gives one answer whatever it is shown is lost too, however frequent that answer is: it is
perfectly prunable and compressible, and would win every column of Table 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from unspur.train.probe import LOST

K = TypeVar("K")


class Ended(NamedTuple):
    """A run that has ended: what result.json says, and the accuracy on its training samples where that is known."""

    result: Mapping[str, Any]
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


def _learned(result: Mapping[str, Any]) -> bool:
    tests = result["tests"].values() if result["status"] == "done" else ()
    return bool(tests) and not all(map(gives_one_answer, tests))


def gives_one_answer(scores: Mapping[str, Any]) -> bool:
    """Whether a model gave the same answer for every sample of a test set with more than one class.

    Nothing right at all is not that: so does a shortcut on images where it misleads.

    >>> gives_one_answer({"groups": [{"y": 0, "accuracy": 1.0}, {"y": 1, "accuracy": 0.0}]})
    True
    >>> gives_one_answer({"groups": [{"y": 0, "accuracy": 0.0}, {"y": 1, "accuracy": 0.0}]})
    False
    >>> gives_one_answer({"groups": [{"y": 0, "accuracy": 1.0}, {"y": 1, "accuracy": 0.1}]})
    False
    """
    shares: dict[int, set[float]] = {}
    for group in scores["groups"]:
        shares.setdefault(group["y"], set()).add(group["accuracy"])
    right, wrong = (sum(share == {whole} for share in shares.values()) for whole in (1.0, 0.0))
    return right == 1 and wrong == len(shares) - 1 > 0
