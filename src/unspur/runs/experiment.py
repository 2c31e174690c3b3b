"""run(config): data, method, model, evaluation, run folder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lightning_fabric import Fabric
from torch import nn

from unspur.core.memory import OUT_OF_MEMORY, is_out_of_memory, keep_freed_memory
from unspur.core.progress import Progress, ProgressBar, silent
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.errors import Diverged, RunFailed, UnspurError
from unspur.evaluation.attribution_observer import FOLLOWED, AttributionMaps, Attributions
from unspur.evaluation.scores import Predictions
from unspur.methods.base import Fit
from unspur.methods.facts import Facts
from unspur.parts.mining import mining_quality
from unspur.runs.config import Config
from unspur.runs.defaults import SetSize, photographs
from unspur.runs.estimate import blind, doubts
from unspur.runs.folder import RESULT, Run
from unspur.runs.machines import require_devices, require_torchrun, say_if_slower
from unspur.runs.result import ENDED, Result, Status
from unspur.runs.result_warnings import (
    lopsided_warnings,
    no_change_warnings,
    nothing_learned_warnings,
    one_class_warnings,
)
from unspur.runs.supervisor import together
from unspur.train.observers import Dynamics, Together
from unspur.train.session import Session, leave_group, one_device


def run(
    config: Config,
    out: Path = Path("runs"),
    *,
    data_dir: Path | None = None,
    files: DataFiles | None = None,
    devices: int = 1,
    nodes: int = 1,
    resume: bool = False,
    follow: int | None = None,
    progress: bool | Progress = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> Result:
    """Do the run that ``config`` describes, or find it done, and return its result.

    An unfinished folder needs ``resume``. Mistakes in the configuration are found before anything is written. With
    ``follow``, a penultimate neuron's number, each epoch's line of metrics.jsonl also shows where attributions lie and
    how much of what that neuron fires for is spurious; the weights are the same with and without. ``files`` are those
    in ``data_dir``, where a command has listed them already. ``progress`` shows a bar, or whatever it is given to. With
    several ``nodes`` torchrun starts this on each of them, ``devices`` times; the first of these processes returns the
    result, the others an empty one.
    """
    require_devices(devices)
    require_torchrun(nodes, devices)
    stored = Run.create(out, config)
    if (result := stored.result()) and result["status"] in ENDED:
        if follow is not None:
            say(f"{stored.folder} has ended before, so that nothing was followed; delete it to do the run again.")
        return result
    if stored.started and not resume and not result:
        raise UnspurError(f"{stored.folder} holds an unfinished run; go on with --resume, or delete it.")
    loaded = Loaded.of(config, files or DataFiles(data_dir))
    config.method.require(loaded.model, loaded.data.train, loaded.data.val, devices * nodes)
    if follow is not None:
        for observer in _followed(stored, loaded.data, follow):
            observer.check(loaded.model)
    say_if_slower([config.precision], say)
    if nodes > 1:
        fabric = fabric_for(config, devices=devices, num_nodes=nodes, strategy="ddp")
        return _on_machines(fabric, stored, loaded, bool(progress), follow, say)
    with stored.working(say):
        if (result := stored.result()) and result["status"] in ENDED:  # another process has done it by now
            return result
        stored.begin()
        if devices == 1:
            return _work(fabric_for(config), stored, lambda: loaded, progress, follow)
        return _together(devices, stored, data_dir, bool(progress), follow)


def _together(devices: int, stored: Run, data_dir: Path | None, progress: bool, follow: int | None) -> Result:
    """The run on several devices of this machine, in a process each; that it failed is written here."""
    began = time.monotonic()
    config = stored.config
    load = partial(_load, config, data_dir)  # each process for itself
    work = partial(_train_and_score, stored=stored, load=load, progress=progress, follow=follow)
    try:
        found: Result = together(devices, partial(fabric_for, config), work, why_it_stopped)
        return found
    except RunFailed as error:
        with contextlib.suppress(OSError):  # on a full disk even this may not fit
            stored.end("failed", time.monotonic() - began, devices, reason=str(error))
        raise


def _on_machines(
    fabric: Fabric, stored: Run, loaded: Loaded, progress: bool, follow: int | None, say: Callable[[str], None]
) -> Result:
    """This process's part of a training on several machines: the first holds the folder, the others wait for that."""
    fabric.launch()
    try:
        with stored.working(say) if fabric.is_global_zero else contextlib.nullcontext():
            if fabric.is_global_zero:
                stored.begin()
            fabric.barrier()
            return _work(fabric, stored, lambda: loaded, progress, follow)
    finally:
        leave_group()


class Loaded(NamedTuple):
    """What a run works on: its data, and its model before training."""

    data: Dataset
    model: nn.Module

    @classmethod
    def of(cls, config: Config, files: DataFiles) -> Loaded:
        data = config.data.load(files)
        return cls(data, config.arch.build(data, seed=config.seed))


def _load(config: Config, data_dir: Path | None) -> Loaded:
    return Loaded.of(config, DataFiles(data_dir))


def fabric_for(config: Config, **options: Any) -> Fabric:
    """Devices that compute in the precision of ``config``."""
    precision: Literal["32-true", "bf16-mixed"] = "bf16-mixed" if config.precision == "bf16" else "32-true"
    return Fabric(accelerator="auto", precision=precision, **options) if options else one_device(precision)


def _followed(stored: Run, data: Dataset, neuron: int) -> list[Attributions | AttributionMaps]:
    """What looks on: shares and the neuron's use where class and shortcut have places, and maps of images."""
    config, images = stored.config, len(data.sample_shape) == 3
    regions = config.data.regions(data.sample_shape)
    maps = [AttributionMaps(data.train, stored.folder / FOLLOWED, config.seed)] if images else []
    if maps and "spurious" not in regions:
        return [*maps]
    return [Attributions(data.train, regions, neuron, config.seed), *maps]


def _work(
    fabric: Fabric, stored: Run, load: Callable[[], Loaded], progress: bool | Progress, follow: int | None = None
) -> Result:
    """Train and score; a run that stops on the way is written as failed."""
    began = time.monotonic()
    try:
        return _train_and_score(fabric, stored, load, progress, follow)
    except Exception as error:
        reason = why_it_stopped(error)
        with contextlib.suppress(OSError):  # on a full disk even this may not fit
            if fabric.is_global_zero:
                stored.end("failed", time.monotonic() - began, fabric.world_size, reason=reason)
        raise RunFailed(reason) from error


def _train_and_score(
    fabric: Fabric, stored: Run, load: Callable[[], Loaded], progress: bool | Progress, follow: int | None
) -> Result:
    """One process's part of a run up to its end, done or diverged."""
    config, leader = stored.config, fabric.is_global_zero
    keep_freed_memory()
    bar = ProgressBar(config.method.name) if progress is True and leader else None
    show: Progress = progress if callable(progress) else bar or silent
    session = Session(fabric, stored.folder, show)

    def end(status: Status, **rest: Any) -> Result:
        # Every rank comes here; one writes, and what it returns is the run's result.
        session.finish()
        return stored.end(status, session.seconds, fabric.world_size, **rest) if leader else {}  # type: ignore[typeddict-item]

    with bar or contextlib.nullcontext():
        data, model = load()
        followed = [] if follow is None else _followed(stored, data, follow)
        session.observer = Together([Dynamics(data.train), *followed])
        try:
            fit = config.method.fit(model, data.train, val=data.val, seed=config.seed, session=session)
        except Diverged as error:
            return end("diverged", reason=str(error), stage=error.stage, step=error.step)
        return end("done", **(_found(stored, fit, data, show) if leader else {}))


def _found(stored: Run, fit: Fit, data: Dataset, progress: Progress) -> dict[str, Any]:
    """Store what ``fit`` returned, score it, and return the blocks of result.json that say so."""
    stored.keep(fit, data)
    result = Predictions(fit.model, RESULT, progress)
    stages = {name: Predictions(stage, name, progress) for name, stage in fit.stages.items()}
    tests = result.scores(data)
    stored.keep_logits({name: model.logits(data) for name, model in {**stages, RESULT: result}.items()})
    dead, before = nothing_learned_warnings(fit.model, data, progress), fit.baseline
    few = doubts(SetSize(len(data.train), len(data.classes))) if photographs(stored.config.data) else []
    return {
        "sizes": {"train": len(data.train), "val": len(data.val)},
        "tests": tests,
        "stages": {name: {"tests": stage.scores(data)} for name, stage in stages.items()},
        "baseline": before._asdict() if before else None,
        "trained": fit.trained,
        "facts": _facts(fit, data),
        "warnings": [
            *few,
            *blind(stored.config),
            *(dead or lopsided_warnings(result, data)),
            *one_class_warnings(tests, data.classes),
            *(no_change_warnings(stages[before.stage], result, data) if before and before.role == "before" else []),
            *_named(fit, data.classes),
        ],
    }


def _named(fit: Fit, classes: Sequence[str]) -> list[str]:
    """The method's warnings; it knows classes that much or nothing was mined of by number, and here they have names."""
    by_name = dict(zip(fit.mining.warnings(), fit.mining.warnings(classes), strict=True)) if fit.mining else {}
    return [by_name.get(sentence, sentence) for sentence in fit.warnings]


def _facts(fit: Fit, data: Dataset) -> Facts:
    """What the method measured, and how well it mined: only here, since a method may not look at attributes."""
    facts = fit.facts
    if fit.mining is not None:
        facts["mining"] = mining_quality(fit.mining.train.nonzero().squeeze(1), data.train)
    return facts


def why_it_stopped(error: Exception) -> str:
    """A sentence on what ended a run."""
    if isinstance(error, UnspurError):
        return str(error)
    if is_out_of_memory(error):
        return f"The run stopped: {OUT_OF_MEMORY}."
    if isinstance(error, OSError):
        return f"The run stopped: {error.strerror or error}; free what is short and go on with --resume."
    return f"The run stopped on an error in the program: {type(error).__name__}: {error}"
