"""Large learning rates (arXiv:2507.17748): 1. Find the highest rate that still converges.  2. Train at it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import ClassVar, TypedDict

from torch import nn

from unspur.data.base import Split
from unspur.errors import Diverged, UnspurError, require
from unspur.methods.base import Fit, Method
from unspur.train.loop import train as train_model
from unspur.train.probe import Probe, Trial, highest_rate
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session

# Section 4.2: SGD at a constant rate in batches of 100, without regularisation, until every sample is fitted.
PAPER = SGD(lr=0.01, momentum=0.0, batch_size=100, epochs=30, until_accuracy=1.0)


HOPELESS = 1e3  # no network of any size learns at a rate above this


class GivenUp(TypedDict):
    """A rate that passed the probe and failed in training."""

    lr: float
    why: str


@dataclass(frozen=True)
class LargeLR(Method):
    """Train at the highest learning rate that still converges, found by a short probe (large-LR, section 4.2).

    A rate may pass the probe and fail later: if the training diverges, or ends too far below what the probe reached or
    predicts one class, it begins again at the next lower rate that passed. At the last of them, an end below the probe
    is kept with a warning.
    """

    name: ClassVar[str] = "large_lr"
    paper: ClassVar[str] = "arXiv:2507.17748"
    cost: ClassVar[str] = "1 and a probe"
    network: ClassVar[str] = "from scratch"
    erm: Optimiser = PAPER  # its lr is where the probe begins
    probe: Probe = Probe()

    def __post_init__(self) -> None:
        lowest = self.erm.lr / self.probe.factor**self.probe.tries
        require(
            lowest <= HOPELESS,
            f"From erm.lr={self.erm.lr:g} the probe could fall to {lowest:.2g} at the least, where nothing learns; "
            "begin with a lower erm.lr, such as 0.01.",
        )

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        rates, trials = highest_rate(model, train, self.erm, self.probe, session)
        best = max(trial.accuracy for trial in trials if trial.accuracy is not None)
        initial = copy.deepcopy(model.state_dict())
        given_up: list[GivenUp] = []
        warnings: list[str] = []
        for rate in rates:
            stage = f"erm-{len(given_up) + 1}" if given_up else "erm"
            model.load_state_dict(initial)
            try:
                train_model(model, train, replace(self.erm, lr=rate), stage=stage, session=session)
            except Diverged as error:
                if rate == rates[-1]:
                    raise
                given_up.append({"lr": rate, "why": str(error)})
                continue
            end = self.probe.judge(model, train, rate, session)
            if end.learned and (end.accuracy or 0.0) >= best - self.probe.lost:
                break
            if rate == rates[-1]:
                _require_learned(end)
                warnings = [f"{_why(end, best)} No lower rate had passed the probe; begin with a lower erm.lr."]
                break
            given_up.append({"lr": rate, "why": _why(end, best)})
        figures = {"lr": rate, "given_up": given_up, "probe": [trial._asdict() for trial in trials]}
        return Fit(model, trained=stage, warnings=warnings, figures=figures)


def _why(end: Trial, best: float) -> str:
    if not end.learned:
        return "It ended with a constant answer."
    return f"It fitted {end.accuracy:.4f} of the training samples, the probe {best:.4f}."


def _require_learned(end: Trial) -> None:
    if not end.learned:
        raise UnspurError(
            f"Even at {end.lr:.3g}, the lowest rate that passed the probe, the training ended with a constant answer; "
            "begin with a lower erm.lr, or allow more erm.epochs."
        )
