"""Search instead of a grid: Optuna proposes settings from what earlier runs scored on validation data.

Every trial is ordinary runs, one a seed. The study is a file in the sweep's folder, so that a search which was stopped
or killed goes on, and trials that were under way are done first. There is no pruner: a run notes training figures as it
goes, and none on validation data that could stop it early.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

from unspur.core.files import writable
from unspur.core.progress import counting
from unspur.core.seeds import derive
from unspur.data.files.fetch import DataFiles
from unspur.data.images.workers import cores
from unspur.errors import UnspurError, require, unknown
from unspur.evaluation.scores import predict
from unspur.metrics.groups import group_accuracy
from unspur.parts.select import validation_groups
from unspur.runs.folder import Run
from unspur.runs.many import Many
from unspur.runs.search_space import Axis, axes_of
from unspur.runs.summary import Point, SweepSummary, summary
from unspur.runs.sweep import point_of, sweep

Choose = Literal["worst_class", "mean", "worst_group"]
CHOICES: tuple[Choose, ...] = ("worst_class", "mean", "worst_group")


@dataclass(frozen=True)
class Search:
    """What is searched, and how far."""

    method: str
    data: str
    ranges: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    arch: str | None = None
    settings: tuple[str, ...] = ()
    trials: int = 40
    budget: float | None = None  # seconds after which no trial begins; None: any
    choose: Choose = "worst_class"  # whose accuracy on validation data is maximised; only worst_group reads groups

    def __post_init__(self) -> None:
        require(self.trials >= 1, f"--trials must be at least 1 but got {self.trials}.")
        require(len(self.seeds) > 0, "A search needs at least one seed, such as --seeds 0.")
        if self.choose not in CHOICES:
            raise unknown("rule", self.choose, CHOICES)

    @property
    def key(self) -> str:
        """What tells a search from others in the same folder; trials and budget may grow."""
        told = [self.method, self.data, self.ranges, self.seeds, self.arch, self.settings, self.choose]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]

    def point(self, chosen: dict[str, str], files: DataFiles) -> Point:
        """The runs of one trial; what is not chosen is as `unspur train` chooses it for photographs."""
        return point_of(self.method, self.data, self.arch, self.settings, chosen, self.seeds, files)


class Found(TypedDict):
    """How a search ended."""

    rule: Choose
    trials: int
    failed: int
    best: dict[str, str]
    value: float  # the mean over seeds
    study: str  # its file


class SearchSummary(SweepSummary):
    """A sweep of the points that were tried, and the best of them."""

    search: Found


def search(
    wanted: Search,
    out: Path = Path("runs"),
    *,
    jobs: int | None = None,
    engine: str = "local",
    data_dir: Path | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> SearchSummary:
    """Do trials until there are as many as wanted or time is up; those of an earlier call count."""
    optuna = _optuna()
    axes, files = axes_of(wanted.ranges), DataFiles(data_dir)
    first = wanted.point(_middle(axes), files)  # a key that does not exist is an error now
    Many(out, jobs, engine, data_dir).require(first.configs)
    validation_groups(wanted.choose, first.configs[0].data.load(files).val)  # as is a set that nothing is chosen on
    writable(out)
    path = out / f"search-{wanted.method}-{wanted.data}-{wanted.key}.journal"
    study = _study(optuna, path, wanted)
    _again(optuna, study)
    began, at_once = time.monotonic(), max(1, (jobs or cores()) // len(wanted.seeds))
    done = len(_ended(study))
    points = {json.dumps(chosen): wanted.point(chosen, files) for chosen in _tried(study)}
    bar = counting("search", wanted.trials, done) if progress else nullcontext(lambda count: None)
    with bar as advance:
        while done < wanted.trials and (wanted.budget is None or time.monotonic() - began < wanted.budget):
            batch = _ask(study, axes, min(at_once, wanted.trials - done), wanted, files)
            own = [point for _, point in batch]
            sweep(own, out, jobs=jobs, engine=engine, data_dir=data_dir, say=say)
            for trial, point in batch:
                _tell(optuna, study, trial, _value(point, wanted, out, data_dir))
                points[json.dumps(point.settings)] = point
            done += len(batch)
            advance(len(batch))
    return _summed(optuna, study, list(points.values()), wanted, out, path)


def _summed(optuna: Any, study: Any, points: list[Point], wanted: Search, out: Path, path: Path) -> SearchSummary:
    complete = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
    require(
        bool(complete),
        f"No trial of the search ended with a model, so that there is no best; look at the runs in {out}.",
    )
    best = max(complete, key=lambda trial: trial.value)
    found: Found = {
        "rule": wanted.choose,
        "trials": len(_ended(study)),
        "failed": len(_ended(study)) - len(complete),
        "best": best.user_attrs["settings"],
        "value": round(best.value, 6),
        "study": str(path),
    }
    return {**summary(points, out), "search": found}


def _optuna() -> Any:  # it is an extra
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import optuna
    except ImportError:
        raise UnspurError(
            "Optuna is not installed; install it with pip install 'unspur[optuna]', or give a --grid and no --search."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _study(optuna: Any, path: Path, wanted: Search) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that parts of it may change
        storage = JournalStorage(JournalFileBackend(str(path)))
        study = optuna.create_study(storage=storage, study_name=wanted.key, direction="maximize", load_if_exists=True)
        # A sampler's state is not stored: one that goes on draws from another stream, not the same values again.
        seed = derive(wanted.seeds[0], "search", len(study.trials)) % 2**32
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    return study


def _again(optuna: Any, study: Any) -> None:
    """Queue what was under way when an earlier search was killed: its runs go on where they stopped."""
    for trial in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params)


def _ended(study: Any) -> list[Any]:
    """Trials that were told how they ended; not those that were cut off and done again."""
    return [trial for trial in study.trials if "ended" in trial.user_attrs]


def _tried(study: Any) -> list[dict[str, str]]:
    return [trial.user_attrs["settings"] for trial in _ended(study)]


def _ask(study: Any, axes: Sequence[Axis], count: int, wanted: Search, files: DataFiles) -> list[tuple[Any, Point]]:
    asked = []
    for _ in range(count):
        trial = study.ask()
        chosen = {axis.key: axis.suggest(trial) for axis in axes}
        trial.set_user_attr("settings", chosen)
        asked.append((trial, wanted.point(chosen, files)))
    return asked


def _tell(optuna: Any, study: Any, trial: Any, value: float | None) -> None:
    trial.set_user_attr("ended", True)
    if value is None:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        study.tell(trial, value)


def _value(point: Point, wanted: Search, out: Path, data_dir: Path | None) -> float | None:
    """The mean over seeds of the rule on validation data; a run that diverged has no model and is worth 0."""
    values = []
    for config in point.configs:
        run = Run.create(out, config)
        result = run.result()
        if not result or result["status"] == "failed":
            return None
        values.append(0.0 if result["status"] == "diverged" else validation_score(run, wanted.choose, data_dir))
    return statistics.fmean(values)


def validation_score(run: Run, rule: Choose, data_dir: Path | None = None) -> float:
    """The accuracy of a finished run on its validation data: of all, or of the class or group that it knows least."""
    data = run.config.data.load(DataFiles(data_dir))
    groups = validation_groups(rule, data.val)
    pred = predict(run.load_model(data), data.val).argmax(1)
    return min(group_accuracy(pred, data.val.y, groups).values())


def _middle(axes: Sequence[Axis]) -> dict[str, str]:
    """Some values, to see whether the keys exist."""
    return {
        axis.key: axis.names[0] if axis.names else str(int(axis.low)) if axis.whole else f"{axis.low:.6g}"
        for axis in axes
    }
