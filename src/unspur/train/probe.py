"""Find the highest learning rate that still converges, by short trainings on training data."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from torch import nn

from unspur.data.base import Split
from unspur.errors import Diverged, UnspurError, require
from unspur.train.loop import measure, train
from unspur.train.recipe import Constant, Optimiser
from unspur.train.seeds import stream
from unspur.train.session import Session


class Trial(NamedTuple):
    """A short training at one rate: how well it fits training samples afterwards; None: the loss was not finite."""

    lr: float
    accuracy: float | None
    loss: float | None
    learned: bool  # more than a constant answer would know


@dataclass(frozen=True)
class Probe:
    """Short trainings at rising rates, from the recipe's own up to the one that no longer converges.

    The paper uses rates "up to the point of divergence or drastic performance loss (>25%)" (large-LR 4.2). It judges
    whole trainings on test data; here short ones are judged on training data, which is all a user has.
    """

    name: ClassVar[str] = "probe"
    steps: int = 100  # of each short training
    samples: int = 2000  # training samples that it is judged on
    factor: float = 2.0  # from one rate to the next
    tries: int = 16  # rates upwards, and if none of them learns anything as many downwards
    lost: float = 0.25  # accuracy below the best at which a rate no longer counts as converging

    def __post_init__(self) -> None:
        require(self.steps >= 1, f"probe.steps must be at least 1 but got {self.steps}.")
        require(self.samples >= 1, f"probe.samples must be at least 1 but got {self.samples}.")
        require(self.factor > 1, f"probe.factor must be above 1 but got {self.factor}.")
        require(self.tries >= 1, f"probe.tries must be at least 1 but got {self.tries}.")
        require(0 < self.lost < 1, f"probe.lost must lie between 0 and 1 but got {self.lost}.")

    def usable(self, trials: Sequence[Trial]) -> list[float]:
        """The rates of ``trials`` that converge, from the lowest to the highest.

        >>> Probe().usable([Trial(0.1, 0.9, 0.3, True), Trial(0.2, 0.7, 1.0, True), Trial(0.4, None, None, False)])
        [0.1, 0.2]
        """
        best = max((t.accuracy for t in trials if t.accuracy is not None and t.learned), default=None)
        kept = [t.lr for t in trials if best is not None and t.accuracy is not None and t.accuracy >= best - self.lost]
        return sorted(kept)

    def run(self, model: nn.Module, split: Split, recipe: Optimiser, *, seed: int, session: Session) -> list[Trial]:
        """Every rate that was tried, in that order; ``model`` is left as it was.

        Rates rise from ``recipe.lr`` until one diverges or loses too much. Where nothing was learned by then, they
        fall from there until something is, and once more to compare with. What was tried is saved and not repeated.
        """
        state = session.load("probe") or {"trials": []}
        trials = [Trial(*values) for values in state["trials"]]
        for rate in self._rates(recipe.lr, trials):
            trials.append(self._try(model, split, replace(recipe, lr=rate), seed, session, len(trials)))
            session.save("probe", {"trials": [list(trial) for trial in trials]})
        return trials

    def _rates(self, start: float, trials: list[Trial]) -> Iterator[float]:
        """The rates still to try; whoever takes one adds its trial to ``trials`` before the next."""
        done = len(trials)
        for number in range(self.tries):
            if number >= done:
                yield start * self.factor**number
            if self._over(trials[: number + 1]):
                break
        up = number + 1
        for down in range(1, self.tries + 1):
            before = trials[: up + down - 1]
            if any(trial.learned for trial in before[:-1]):
                return
            if up + down > done:
                yield start / self.factor**down

    def _over(self, trials: Sequence[Trial]) -> bool:
        """Whether the last of rising rates no longer converges."""
        *earlier, last = trials
        if last.accuracy is None:
            return True
        return any(t.learned and t.accuracy is not None and last.accuracy < t.accuracy - self.lost for t in earlier)

    def _try(
        self, model: nn.Module, split: Split, recipe: Optimiser, seed: int, session: Session, number: int
    ) -> Trial:
        wanted, order = self.steps * recipe.batch_size, torch.randperm(len(split), generator=stream(seed, "probe"))
        short = replace(
            recipe,
            epochs=math.ceil(wanted / len(split)) if wanted > len(split) else 1,
            schedule=Constant(),
            until_accuracy=None,
            until_loss=None,
        )
        most = 2 * self.tries
        quiet = Session(session.fabric, progress=lambda _, done: session.progress("probe", (number + done) / most))
        trained = copy.deepcopy(model)
        try:
            train(trained, split.subset(order[:wanted]), short, stage="probe", seed=seed, session=quiet)
        except Diverged:
            return Trial(recipe.lr, None, None, False)
        judged = split.subset(order[: self.samples])
        accuracy, loss = measure(trained, judged, quiet)
        if not math.isfinite(loss):
            return Trial(recipe.lr, None, None, False)
        return Trial(recipe.lr, accuracy, loss, _learned(accuracy, loss, judged))


def highest_rate(
    model: nn.Module, split: Split, recipe: Optimiser, probe: Probe, *, seed: int, session: Session
) -> tuple[list[float], list[Trial]]:
    """The rates that converge, the highest first, and all trials; for any method that trains with a recipe."""
    trials = probe.run(model, split, recipe, seed=seed, session=session)
    rates = probe.usable(trials)[::-1]
    if not rates:
        tried = sorted(trial.lr for trial in trials)
        raise UnspurError(
            f"No learning rate from {tried[0]:.3g} to {tried[-1]:.3g} learns anything in {probe.steps} steps; begin "
            "with another lr, or allow more probe.steps."
        )
    return rates, trials


def _learned(accuracy: float, loss: float, judged: Split) -> bool:
    """Whether a model is surely better than always answering with the most frequent class or the classes' shares."""
    shares = torch.bincount(judged.y).double() / len(judged)
    most = float(shares.max())
    above = accuracy - most > 2 * math.sqrt(most * (1 - most) / len(judged))
    return above or loss < 0.99 * float(torch.special.entr(shares).sum())
