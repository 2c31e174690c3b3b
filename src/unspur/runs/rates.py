"""The highest learning rate at which a configuration still converges."""

from __future__ import annotations

import contextlib
from typing import TypedDict

from unspur.core.progress import ProgressBar, silent
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError
from unspur.runs.config import Config
from unspur.runs.experiment import Loaded, fabric_for
from unspur.train.probe import Probe, highest_rate
from unspur.train.recipe import Optimiser
from unspur.train.session import Session


class TrialBlock(TypedDict):
    """A short training at one rate."""

    lr: float
    accuracy: float | None
    loss: float | None
    learned: bool


class RateSearch(TypedDict):
    """The highest rate that converges, all that do, and every one that was tried."""

    method: str
    dataset: str
    arch: str
    seed: int
    setting: str  # the key that the rate is set by, such as erm.lr
    lr: float
    converge: list[float]
    trials: list[TrialBlock]


def find_rate(config: Config, files: DataFiles | None = None, *, progress: bool = False) -> RateSearch:
    """The highest learning rate at which a method's ``erm`` recipe still converges, by short trainings (large-LR 4.2).

    They begin at the recipe's own rate and are judged on training data; nothing is stored.
    """
    name = "erm" if hasattr(config.method, "erm") else "training"
    recipe = getattr(config.method, name, None)
    if not isinstance(recipe, Optimiser):
        raise UnspurError(
            f"{config.method.name} has no setting erm.lr whose highest value could be found; see `unspur methods`."
        )
    probe = getattr(config.method, "probe", Probe())
    data, model = Loaded.of(config, files or DataFiles())
    bar = ProgressBar("probe") if progress else None
    with bar or contextlib.nullcontext():
        session = Session(fabric_for(config), progress=bar or silent, seed=config.seed)
        rates, trials = highest_rate(model, data.train, recipe, probe, session, config.method.loss)
    return {
        "method": config.method.name,
        "dataset": config.data.name,
        "arch": config.arch.name,
        "seed": config.seed,
        "setting": f"{name}.lr",
        "lr": rates[0],
        "converge": rates[::-1],
        "trials": [
            {"lr": trial.lr, "accuracy": trial.accuracy, "loss": trial.loss, "learned": trial.learned}
            for trial in trials
        ],
    }
