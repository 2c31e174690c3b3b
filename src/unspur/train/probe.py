"""Find the highest learning rate that still converges, by short trainings on training data."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import Diverged, UnspurError, require
from unspur.train.loop import measure, train
from unspur.train.losses import Loss, cross_entropy
from unspur.train.recipe import LARGEST_RATE, Optimiser
from unspur.train.schedules import Constant
from unspur.train.session import Session

LOST = 0.25  # a rate is no longer usable when its training accuracy is this far below the best (large-LR 4.2)


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
    lost: float = LOST  # accuracy below the best at which a rate no longer counts as converging

    def __post_init__(self) -> None:
        require(self.steps >= 1, f"probe.steps must be at least 1 but got {self.steps}.")
        require(self.samples >= 1, f"probe.samples must be at least 1 but got {self.samples}.")
        require(1 < self.factor <= 1e6, f"probe.factor must be above 1 and at most 1e6 but got {self.factor}.")
        require(self.tries >= 1, f"probe.tries must be at least 1 but got {self.tries}.")
        require(0 < self.lost < 1, f"probe.lost must lie between 0 and 1 but got {self.lost}.")

    def usable(self, trials: Sequence[Trial]) -> list[float]:
        """The rates of ``trials`` that converge, from the lowest to the highest.

        >>> Probe().usable([Trial(0.1, 0.9, 0.3, True), Trial(0.2, 0.7, 1.0, True), Trial(0.4, None, None, False)])
        [0.1, 0.2]
        """
        learned = [(t.lr, t.accuracy) for t in trials if t.accuracy is not None and t.learned]
        best = max((accuracy for _, accuracy in learned), default=0.0)
        return sorted(lr for lr, accuracy in learned if accuracy >= best - self.lost)

    def run(
        self,
        model: nn.Module,
        split: Split,
        recipe: Optimiser,
        session: Session,
        loss: Loss = cross_entropy,
    ) -> list[Trial]:
        """Every rate that was tried, in that order; ``model`` is left as it was.

        Rates rise from ``recipe.lr`` until one diverges or loses too much. If no rate has learned anything by then,
        they fall from ``recipe.lr`` until one does, then once more for comparison. Trials are saved and not repeated.
        """
        state = session.load("probe") or {"trials": []}
        trials = [Trial(*values) for values in state["trials"]]
        for rate in self._rates(recipe.lr, trials):
            trials.append(self._try(model, split, replace(recipe, lr=rate), session, loss))
            session.save("probe", {"trials": [list(trial) for trial in trials]})
        return trials

    def _rates(self, start: float, trials: list[Trial]) -> Iterator[float]:
        """The rates still to try; the caller adds each rate's trial to ``trials`` before it takes the next one."""
        done, up = len(trials), 0
        for number in range(self.tries):
            rate = start * self.factor**number
            if rate > LARGEST_RATE:
                break
            if number >= done:
                yield rate
            up = number + 1
            if self._over(trials[:up]):
                break
        for down in range(1, self.tries + 1):
            before = trials[: up + down - 1]
            if any(trial.learned for trial in before[:-1]):
                return
            if up + down > done:
                yield start / self.factor**down

    def _over(self, trials: Sequence[Trial]) -> bool:
        """Whether the last of the rising rates no longer converges."""
        last = trials[-1]
        return last.accuracy is None or (any(t.learned for t in trials) and last.lr not in self.usable(trials))

    def judge(self, model: nn.Module, split: Split, lr: float, session: Session) -> Trial:
        """How well ``model``, trained at ``lr``, fits some samples, by cross-entropy, whatever loss it minimised."""
        judged = split.subset(_order(split, session)[: self.samples])
        accuracy, loss = measure(model, judged, session)
        if not math.isfinite(loss):
            return Trial(lr, None, None, False)
        return Trial(lr, accuracy, loss, _learned(accuracy, loss, judged))

    def _try(self, model: nn.Module, split: Split, recipe: Optimiser, session: Session, loss: Loss) -> Trial:
        wanted = self.steps * recipe.batch_size
        short = replace(
            recipe,
            epochs=math.ceil(wanted / len(split)) if wanted > len(split) else 1,
            schedule=Constant(),
            until_accuracy=None,
            until_loss=None,
        )
        quiet = Session(
            session.fabric, progress=lambda _, done: session.progress(f"rate {recipe.lr:g}", done), seed=session.seed
        )
        trained, some = copy.deepcopy(model), split.subset(_order(split, session)[:wanted])
        try:
            train(trained, some, short, stage="probe", session=quiet, loss=loss)
        except Diverged:
            return Trial(recipe.lr, None, None, False)
        return self.judge(trained, split, recipe.lr, quiet)


def highest_rate(
    model: nn.Module,
    split: Split,
    recipe: Optimiser,
    probe: Probe,
    session: Session,
    loss: Loss = cross_entropy,
) -> tuple[list[float], list[Trial]]:
    """The rates that converge, the highest first, and all trials; for any method that trains with a recipe."""
    trials = probe.run(model, split, recipe, session, loss)
    rates = probe.usable(trials)[::-1]
    if not rates:
        tried = sorted(trial.lr for trial in trials)
        raise UnspurError(
            f"No learning rate from {tried[0]:.3g} to {tried[-1]:.3g} learns anything in {probe.steps} steps; begin "
            "with another lr, or allow more probe.steps."
        )
    return rates, trials


def _order(split: Split, session: Session) -> Tensor:
    return torch.randperm(len(split), generator=stream(session.seed, "probe"))


def _learned(accuracy: float, loss: float, judged: Split) -> bool:
    """Whether a model clearly beats always answering with the most frequent class, or with the classes' shares."""
    shares = torch.bincount(judged.y).double() / len(judged)
    most = float(shares.max())
    above = accuracy - most > 2 * math.sqrt(most * (1 - most) / len(judged))
    return above or loss < 0.99 * float(torch.special.entr(shares).sum())
