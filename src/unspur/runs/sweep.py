"""Many runs: a grid of settings and seeds, done side by side and resumable."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from unspur.data.files.fetch import DataFiles
from unspur.errors import require
from unspur.runs.config import Config, configure, pairs
from unspur.runs.defaults import given_keys
from unspur.runs.estimate import fitted_to
from unspur.runs.many import Many
from unspur.runs.summary import Point, SweepSummary, summary


def plan(
    method: str,
    data: str,
    grid: Sequence[str],
    seeds: Sequence[int],
    arch: str | None = None,
    settings: Iterable[str] = (),
    files: DataFiles | None = None,
) -> list[Point]:
    """Every point of the grid ``KEY=V1,V2``, ...; anything that does not exist is an error now, before any run.

    What is neither in the grid nor in ``settings`` is as `unspur train` chooses it for photographs.

    >>> points = plan("erm", "parity", ["erm.lr=0.1,1", "erm.batch_size=50,100"], [0, 1])
    >>> len(points), points[1].label
    (4, 'erm.lr=0.1 erm.batch_size=100')
    """
    axes = _axes(grid)
    require(len(seeds) > 0, "A sweep needs at least one seed, such as --seeds 0,1,2.")
    base, files = list(settings), files or DataFiles()
    points: dict[tuple[Config, ...], Point] = {}
    for values in itertools.product(*axes.values()):
        point = point_of(method, data, arch, base, dict(zip(axes, values, strict=True)), seeds, files)
        points.setdefault(point.configs, point)  # 0.1 and 0.10 are one point
    return list(points.values())


def point_of(
    method: str,
    data: str,
    arch: str | None,
    settings: Sequence[str],
    chosen: dict[str, str],
    seeds: Sequence[int],
    files: DataFiles,
) -> Point:
    """The runs of one point, ``chosen``: one for each seed, with defaults that fit photographs."""
    own = [*settings, *(f"{key}={value}" for key, value in chosen.items())]
    config = configure(method, data, arch, 0, own)
    config = fitted_to(files, config, given_keys(config.method, arch, own))
    return Point(chosen, tuple(replace(config, seed=seed) for seed in seeds))


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
    configs = [config for point in points for config in point.configs]
    many = Many(out, jobs, engine, data_dir, analyze)
    return summary(points, out, many.do(configs, "sweep", progress=progress, say=say))
