"""Many runs: a grid of settings and seeds, done side by side and resumable."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path

from unspur.core.progress import counting
from unspur.data.files.fetch import DataFiles
from unspur.errors import require, unknown
from unspur.runs.analyze import stored_analysis
from unspur.runs.config import Config, configure, pairs
from unspur.runs.engines import ENGINES, Job, Outcome
from unspur.runs.folder import Run, writable
from unspur.runs.result import ENDED
from unspur.runs.summary import Point, SweepSummary, summary


def plan(
    method: str,
    data: str,
    grid: Sequence[str],
    seeds: Sequence[int],
    arch: str | None = None,
    settings: Iterable[str] = (),
) -> list[Point]:
    """Every point of the grid ``KEY=V1,V2``, ...; anything that does not exist is an error now, before any run.

    >>> points = plan("erm", "parity", ["erm.lr=0.1,1", "erm.batch_size=50,100"], [0, 1])
    >>> len(points), points[1].label
    (4, 'erm.lr=0.1 erm.batch_size=100')
    """
    axes = _axes(grid)
    require(len(seeds) > 0, "A sweep needs at least one seed, such as --seeds 0,1,2.")
    base = list(settings)
    points: dict[tuple[Config, ...], Point] = {}
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        own = [f"{key}={value}" for key, value in chosen.items()]
        configs = tuple(configure(method, data, arch, seed, [*base, *own]) for seed in seeds)
        points.setdefault(configs, Point(chosen, configs))  # 0.1 and 0.10 are one point
    return list(points.values())


def _axes(grid: Sequence[str]) -> dict[str, list[str]]:
    axes: dict[str, list[str]] = {}
    for key, text in pairs(grid):
        values = [value.strip() for value in text.split(",") if value.strip()]
        require(bool(values), f"The grid of {key} is empty; give values, such as --grid {key}=V1,V2.")
        require(key not in axes, f"The grid names {key} twice; give all its values in one --grid {key}=V1,V2.")
        axes[key] = list(dict.fromkeys(values))
    require(bool(axes), "A sweep needs a grid, such as --grid erm.lr=0.01,0.1.")
    return axes


def sweep(
    points: Sequence[Point],
    out: Path = Path("runs"),
    *,
    jobs: int | None = None,
    engine: str = "local",
    data_dir: Path | None = None,
    analyze: bool = False,
    progress: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> SweepSummary:
    """Do every run of ``points`` that has not ended, ``jobs`` at a time, and sum up what all of them found.

    Runs are the same folders that ``run`` makes, each done on one thread. Those that are ``done`` or ``diverged`` are
    not repeated (but analysed where ``analyze`` asks for it and they were not), those that failed or were interrupted
    go on. A run that fails, even by its process being killed, is recorded as failed and the others go on.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    require(jobs is None or jobs >= 1, f"--jobs must be at least 1 but got {jobs}.")
    configs = {config.key: config for point in points for config in point.configs}
    left = [config for config in configs.values() if _unfinished(Run.create(out, config), analyze)]
    _check(left, data_dir)
    writable(out)
    data = str(data_dir) if data_dir else None
    queue = [Job(config.to_json(), str(out), data, analyze) for config in left]
    outcomes: dict[str, Outcome] = {}
    bar = counting("sweep", len(configs), len(configs) - len(left)) if progress else nullcontext(_uncounted)
    with bar as advance, closing(ENGINES[engine](queue, jobs)) as ended:
        for number, outcome in ended:
            outcomes[left[number].key] = outcome
            if outcome.reason:
                say(f"{Run.create(out, left[number]).folder.name} {outcome.status}: {outcome.reason}")
            advance(1)
    return summary(points, out, outcomes)


def _uncounted(count: int) -> None:
    """Nobody is shown how many runs have ended."""


def _unfinished(stored: Run, analyze: bool) -> bool:
    result = stored.result()
    if not result or result["status"] not in ENDED:
        return True
    stored.log()  # an error now if it cannot be read, and not when all others have been trained
    return analyze and result["status"] == "done" and stored_analysis(stored.folder) is None


def _check(configs: Sequence[Config], data_dir: Path | None) -> None:
    """Load every data set, build every architecture and ask every method once, so that no run starts that cannot."""
    files = DataFiles(data_dir)
    for spec in dict.fromkeys(config.data for config in configs):
        data, own = spec.load(files), [config for config in configs if config.data == spec]
        for arch in dict.fromkeys(config.arch for config in own):
            model = arch.build(data)
            for method in dict.fromkeys(config.method for config in own if config.arch == arch):
                method.require(model, data.train, data.val)
