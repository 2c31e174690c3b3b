"""run(config): data, method, model, evaluation, run folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric
from torch import nn

from unspur.core.progress import ProgressBar
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.errors import Diverged, RunFailed, UnspurError
from unspur.evaluation.abstention import selective_scores
from unspur.evaluation.attribution_observer import Attributions, Together
from unspur.evaluation.scores import evaluate
from unspur.methods.base import Checks, Fit, Method, OwnLoss
from unspur.parts.mining import mining_quality
from unspur.runs.config import Config, configure_data
from unspur.runs.folder import ENDED, Run
from unspur.train.losses import cross_entropy
from unspur.train.observers import Dynamics
from unspur.train.probe import Probe, highest_rate
from unspur.train.recipe import Optimiser
from unspur.train.session import Session, leave_group, silent


def run(
    config: Config,
    out: Path = Path("runs"),
    *,
    data_dir: Path | None = None,
    devices: int = 1,
    resume: bool = False,
    follow: int | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Any]:
    """Do the run that ``config`` describes, or find it done, and return its result.

    An unfinished folder needs ``resume``. Mistakes in the configuration are found before anything is written. With
    ``follow``, a penultimate neuron's number, each epoch's line of metrics.jsonl also tells where attributions lie and
    how much of what that neuron fires for is spurious; the weights are the same with and without.
    """
    if devices < 1:
        raise UnspurError(f"--devices must be at least 1 but got {devices}.")
    if devices > 1 and config.method.one_device:
        raise UnspurError(f"{config.method.name} runs on one device, but got {devices}; use --devices 1.")
    stored = Run.create(out, config)
    if (result := stored.result()) and result["status"] in ENDED:
        if follow is not None:
            say(f"{stored.folder} has ended before, so that nothing was followed; delete it to do the run again.")
        return result
    if stored.started and not resume and not result:
        raise UnspurError(f"{stored.folder} holds an unfinished run; go on with --resume, or delete it.")
    data = config.data.load(DataFiles(data_dir))
    model = config.arch.build(data, seed=config.seed)
    check(config.method, model, data)
    if follow is not None:
        _followed(config, data, follow).check(model)
    with stored.working(say):
        if (result := stored.result()) and result["status"] in ENDED:  # another process has done it by now
            return result
        stored.begin()
        return _launch(stored, data_dir, devices, progress, follow)


def check(method: Method, model: nn.Module, data: Dataset) -> None:
    """Refuse, before anything is trained or written, what ``method`` can tell that it cannot work with."""
    if isinstance(method, Checks):
        method.check(model, data.train, data.val)


def find_rate(config: Config, *, data_dir: Path | None = None, progress: bool = False) -> dict[str, Any]:
    """The highest learning rate at which a method's ``erm`` recipe still converges, by short trainings (large-LR 4.2).

    They begin at the recipe's own rate and are judged on training data; nothing is stored.
    """
    recipe = getattr(config.method, "erm", None)
    if not isinstance(recipe, Optimiser):
        raise UnspurError(
            f"{config.method.name} has no setting erm.lr whose highest value could be found; see `unspur methods`."
        )
    probe = getattr(config.method, "probe", Probe())
    data = config.data.load(DataFiles(data_dir))
    model = config.arch.build(data, seed=config.seed)
    bar = ProgressBar("probe") if progress else None
    with bar or contextlib.nullcontext():
        session = Session(fabric_for(config), progress=bar or silent)
        loss = config.method.loss if isinstance(config.method, OwnLoss) else cross_entropy
        rates, trials = highest_rate(model, data.train, recipe, probe, seed=config.seed, session=session, loss=loss)
    names = {"method": config.method.name, "dataset": config.data.name, "arch": config.arch.name, "seed": config.seed}
    return {**names, "lr": rates[0], "converge": rates[::-1], "trials": [trial._asdict() for trial in trials]}


def score_run(
    folder: Path, dataset: str | None, settings: Sequence[str], data_dir: Path | None, coverage: float | None = None
) -> dict[str, Any]:
    """A stored run's result, scored anew on its own data or on that of another set, with a coverage also abstaining."""
    stored = Run.open(folder)
    result = stored.finished()
    own, files = stored.config.data, DataFiles(data_dir)
    trained = own.load(files)
    other = configure_data(dataset, settings) if dataset else own
    data = trained if other == own else replace(other.load(files), train=trained.train)
    if data.sample_shape != trained.sample_shape or len(data.classes) != len(trained.classes):
        raise UnspurError(
            f"The run was trained on {tuple(trained.sample_shape)} in {len(trained.classes)} classes; {other.name} has "
            f"{tuple(data.sample_shape)} in {len(data.classes)}."
        )
    stages = {name: {"tests": evaluate(stored.load_model(trained, name), data)} for name in stored.stages()}
    model = stored.load_model(trained)
    scored = {**result, "dataset": other.name, "tests": evaluate(model, data), "stages": stages}
    if coverage is not None:
        before = stored.load_model(trained, "erm") if "erm" in stages else model
        # Whatever is scored, the threshold comes from the validation data of the set that the run was trained on.
        scored["selective"] = selective_scores(before, model, replace(data, val=trained.val), coverage)
    return scored


def _launch(stored: Run, data_dir: Path | None, devices: int, progress: bool, follow: int | None) -> dict[str, Any]:
    """Work in this process, or in one process a device."""
    if devices == 1:
        return _work(fabric_for(stored.config), stored, data_dir, progress, follow)
    fabric = fabric_for(stored.config, devices=devices, strategy="ddp_spawn")
    rest: dict[str, Any] = {"stored": stored, "data_dir": data_dir, "progress": progress, "follow": follow}
    result: dict[str, Any] = fabric.launch(partial(_work_together, **rest))
    return result


def fabric_for(config: Config, **options: Any) -> Fabric:
    """Devices that compute in the precision of ``config``."""
    mixed = config.precision == "bf16"
    return Fabric(accelerator="auto", precision="bf16-mixed" if mixed else "32-true", **{"devices": 1, **options})


def _work_together(fabric: Fabric, **rest: Any) -> dict[str, Any]:
    try:
        return _work(fabric, **rest)
    finally:
        leave_group()


def _followed(config: Config, data: Dataset, neuron: int) -> Attributions:
    return Attributions(data.train, config.data.regions(data.sample_shape), neuron, config.seed)


def _work(
    fabric: Fabric, stored: Run, data_dir: Path | None, progress: bool, follow: int | None = None
) -> dict[str, Any]:
    config, leader = stored.config, fabric.is_global_zero
    bar = ProgressBar(stored.folder.name) if progress and leader else None
    session = Session(fabric, stored.folder, bar or silent)

    def end(status: str, **rest: Any) -> dict[str, Any]:
        # Every rank comes here; one writes.
        return stored.end(status, session.seconds, fabric.world_size, **rest) if leader else {}

    with bar or contextlib.nullcontext():
        try:
            data = config.data.load(DataFiles(data_dir))
            model = config.arch.build(data, seed=config.seed)
            followed = [] if follow is None else [_followed(config, data, follow)]
            session.observer = Together([Dynamics(data.train), *followed])
            fit = config.method.fit(model, data.train, val=data.val, seed=config.seed, session=session)
            if not leader:
                return {}
            stored.keep(fit, data)
            stages = {name: {"tests": evaluate(stage, data)} for name, stage in fit.stages.items()}
            return end("done", tests=evaluate(fit.model, data), stages=stages, facts=_facts(fit, data))
        except Diverged as error:
            return end("diverged", reason=str(error), stage=error.stage, step=error.step)
        except Exception as error:
            reason = _reason(error)
            with contextlib.suppress(OSError):  # on a full disk even this may not fit
                end("failed", reason=reason)
            raise RunFailed(reason) from error


def _facts(fit: Fit, data: Dataset) -> dict[str, Any]:
    """What the method measured, and how well it mined: only here, since a method may not look at attributes."""
    mined = fit.artifacts.get("mined")
    return {**fit.facts, **({} if mined is None else {"mining": mining_quality(mined, data.train)})}


def _reason(error: Exception) -> str:
    if isinstance(error, UnspurError):
        return str(error)
    if isinstance(error, OSError):
        return f"The run stopped: {error.strerror or error}; free what is short and go on with --resume."
    return f"The run stopped on an error in the program: {type(error).__name__}: {error}"
