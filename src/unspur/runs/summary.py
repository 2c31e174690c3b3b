"""What the runs of a grid found, summed up: scores over seeds, which points are usable, and rank correlations."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from unspur.evaluation.figures import figures
from unspur.evaluation.scores import ScoreName
from unspur.metrics.correlation import rank_correlation
from unspur.runs.analyze import stored_analysis
from unspur.runs.config import Config
from unspur.runs.convergence import Ended, EndedResult, Unfinished, usable
from unspur.runs.engines import Outcome
from unspur.runs.folder import Run


class RunRow(TypedDict):
    """One run: how it ended, where it was made and its scores by name."""

    seed: int
    key: str
    folder: str
    status: str
    reason: NotRequired[str]
    seconds: NotRequired[float]
    commit: NotRequired[str | None]
    machine: NotRequired[str]
    scores: dict[str, float]


class Spread(TypedDict):
    """A score over the seeds of a point."""

    mean: float
    deviation: float | None
    n: int


class PointSummary(TypedDict):
    """One point of a grid."""

    settings: dict[str, str]
    usable: bool
    scores: dict[str, Spread]
    runs: list[RunRow]


class SweepSummary(TypedDict):
    """What a sweep found; `summary` says what each field means."""

    method: str
    dataset: str
    arch: str
    seeds: list[int]
    points: list[PointSummary]
    usable_range: list[float] | None
    correlations: dict[str, dict[str, float | None]]
    with_accuracy: dict[str, float | None]


SCORES: tuple[ScoreName, ...] = ("accuracy", "worst_group_accuracy", "aligned_accuracy", "conflicting_accuracy")
NOTED = ("reason", "seconds", "commit", "machine")  # of a result, in a row


@dataclass(frozen=True)
class Point:
    """One point of a grid: what is set there, and a configuration for each seed."""

    settings: dict[str, str]
    configs: tuple[Config, ...]

    @property
    def label(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.settings.items())


def summary(points: Sequence[Point], out: Path, outcomes: dict[str, Outcome] | None = None) -> SweepSummary:
    """What the runs of ``points`` found: for each point the mean and deviation of every score over its seeds.

    ``usable`` says whether every seed of a point ended well (``usable.py``); in a grid over one number no point is
    beyond the first that did not. ``usable_range`` is the lowest and highest usable value of such a grid (4.2).
    ``correlations`` has the rank correlation of each score with each key that is a number, ``with_accuracy`` that with
    the accuracy on the unbiased test set, or the first (Figure 12); both over all runs of usable points.
    """
    runs = [[Run.create(out, config) for config in point.configs] for point in points]
    ended = [[Ended(_result(run, outcomes or {}), run.training_accuracy()) for run in own] for own in runs]
    good, span = _usable([point.settings for point in points], ended)
    described: list[PointSummary] = []
    for number, point in enumerate(points):
        rows = [_row(run, end) for run, end in zip(runs[number], ended[number], strict=True)]
        names = dict.fromkeys(name for row in rows for name in row["scores"])
        described.append(
            {
                "settings": point.settings,
                "usable": number in good,
                "scores": {name: _spread([r["scores"][name] for r in rows if name in r["scores"]]) for name in names},
                "runs": rows,
            }
        )
    first = points[0].configs[0]
    return {
        "method": first.method.name,
        "dataset": first.data.name,
        "arch": first.arch.name,
        "seeds": sorted({config.seed for point in points for config in point.configs}),
        "points": described,
        "usable_range": span,
        "correlations": correlations(described),
        "with_accuracy": with_accuracy(described),
    }


def _usable(
    settings: Sequence[Mapping[str, str]], ended: Sequence[Sequence[Ended]]
) -> tuple[set[int], list[float] | None]:
    """The numbers of the usable points; of a grid over one number also its lowest and highest usable value."""
    (key, *others), numbers = settings[0], range(len(settings))
    places = None if others else _places(settings, key)
    if places is None:
        return usable({number: ended[number] for number in numbers}), None
    rising = sorted(numbers, key=places.__getitem__)
    good = usable({number: ended[number] for number in rising}, in_order=True)
    kept = [places[number] for number in rising if number in good]
    return good, [kept[0], kept[-1]] if kept else None


def _result(stored: Run, outcomes: dict[str, Outcome]) -> EndedResult:
    """What the run's folder says of its end, or what this sweep knows better."""
    unfinished: Unfinished = {"status": "unfinished"}
    result: EndedResult = stored.result() or unfinished
    outcome = outcomes.get(stored.config.key)
    if outcome and outcome.status != result["status"]:  # such as a mistake found before anything was done
        return {"status": outcome.status, "reason": outcome.reason or ""}
    if outcome and outcome.reason:  # such as no analysis
        result["reason"] = result.get("reason", outcome.reason)
    return result


def _row(stored: Run, ended: Ended) -> RunRow:
    known: dict[str, Any] = {name: value for name, value in ended.result.items() if name in NOTED}
    return {
        "seed": stored.config.seed,
        "key": stored.config.key,
        "folder": stored.folder.name,
        "status": ended.result["status"],
        **known,  # type: ignore[typeddict-item]
        "scores": _scores(stored, ended) if ended.result["status"] == "done" else {},
    }


def _scores(stored: Run, ended: Ended) -> dict[str, float]:
    found = {
        f"{test} {field.replace('_', ' ')}": share
        for test, block in ended.result.get("tests", {}).items()
        for field in SCORES
        if (share := block.get(field)) is not None
    }
    if epochs := sum("accuracy" in line for line in stored.kept_log()):
        found["epochs"] = float(epochs)
    if ended.fitted is not None:
        found["training accuracy"] = ended.fitted
    if analysis := stored_analysis(stored.folder):
        found |= figures(analysis)
    return found


def _spread(values: Sequence[float]) -> Spread:
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "deviation": deviation, "n": len(values)}


def _places(settings: Sequence[Mapping[str, str]], key: str) -> list[float] | None:
    """Each point's value of ``key``; None if they are names, which have no order."""
    try:
        return [float(chosen[key]) for chosen in settings]
    except ValueError:
        return None


def with_accuracy(points: Sequence[PointSummary]) -> dict[str, float | None]:
    """The rank correlation of every score with the first test set's accuracy, or the unbiased one's."""
    runs = [row["scores"] for point in points if point["usable"] for row in point["runs"]]
    names = list(dict.fromkeys(name for scores in runs for name in scores))
    tests = [name for name in names if name.endswith(" accuracy")]
    if not tests:
        return {}
    main = "unbiased accuracy" if "unbiased accuracy" in tests else tests[0]
    both = {name: [scores for scores in runs if name in scores and main in scores] for name in names if name != main}
    return {
        name: rank_correlation([s[main] for s in scores], [s[name] for s in scores]) for name, scores in both.items()
    }


def correlations(points: Sequence[PointSummary]) -> dict[str, dict[str, float | None]]:
    """The rank correlation of every score with every key of the grid whose values are numbers."""
    found: dict[str, dict[str, float | None]] = {}
    for key in points[0]["settings"]:
        places = _places([point["settings"] for point in points], key)
        if places is None:
            continue
        good = [(place, point) for place, point in zip(places, points, strict=True) if point["usable"]]
        runs = [(place, row["scores"]) for place, point in good for row in point["runs"]]
        names = dict.fromkeys(name for _, scores in runs for name in scores)
        found[key] = {
            name: rank_correlation(
                [place for place, scores in runs if name in scores], [s[name] for _, s in runs if name in s]
            )
            for name in names
        }
    return found
