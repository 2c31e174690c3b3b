"""Which settings of a sweep are usable: those "up to the point of divergence or drastic performance loss".

That is section 4.2 of the large-learning-rate paper, which means a loss of more than 25 points of accuracy. A network
that gives one answer whatever it is shown is lost too, however frequent that answer is: it is perfectly prunable and
compressible, and would win every column of Table 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from unspur.train.probe import LOST

K = TypeVar("K")


class Ended(NamedTuple):
    """A run that has ended: what result.json says, and the accuracy on its training samples where that is known."""

    result: Mapping[str, Any]
    fitted: float | None


def usable(runs: Mapping[K, Sequence[Ended]]) -> set[K]:
    """The settings all of whose runs are done, give more than one answer, and fit not 25 points worse than the best."""
    good = {key: [run for run in own if _learned(run.result)] for key, own in runs.items()}
    fitted = [run.fitted for own in good.values() for run in own if run.fitted is not None]
    least = max(fitted, default=0.0) - LOST
    return {
        key
        for key, own in runs.items()
        if own and len(good[key]) == len(own) and all(run.fitted is None or run.fitted >= least for run in own)
    }


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
