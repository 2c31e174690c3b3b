"""How a learning rate changes while a network trains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from unspur.core.options import added
from unspur.errors import require


def _require_factor(gamma: float) -> None:
    require(math.isfinite(gamma) and gamma > 0, f"schedule.gamma must be a positive number but got {gamma}.")


@dataclass(frozen=True)
class Constant:
    """The same rate throughout."""

    name: ClassVar[str] = "constant"

    def factor(self, epoch: float, epochs: int, step: int) -> float:
        return 1.0


@dataclass(frozen=True)
class StepDecay:
    """Multiply the rate by a factor every few epochs."""

    name: ClassVar[str] = "step"
    every: int = 25  # epochs between drops
    gamma: float = 0.5  # what the rate is multiplied with at a drop

    def __post_init__(self) -> None:
        require(self.every >= 1, f"schedule.every must be at least 1 epoch but got {self.every}.")
        _require_factor(self.gamma)

    def factor(self, epoch: float, epochs: int, step: int) -> float:
        return float(self.gamma ** (int(epoch) // self.every))


@dataclass(frozen=True)
class MultiStep:
    """Multiply the rate by a factor at given epochs."""

    name: ClassVar[str] = "multistep"
    at: tuple[int, ...] = (50,)  # epochs at which the rate drops
    gamma: float = 0.1  # what the rate is multiplied with at a drop

    def __post_init__(self) -> None:
        require(all(drop >= 0 for drop in self.at), f"schedule.at must have epochs from 0 but got {list(self.at)}.")
        _require_factor(self.gamma)

    def factor(self, epoch: float, epochs: int, step: int) -> float:
        return float(self.gamma ** sum(epoch >= drop for drop in self.at))


@dataclass(frozen=True)
class Drop:
    """Multiply the rate by a factor after a number of steps: once (large-LR D.4, Figures 22 and 28), or each time.

    >>> [Drop(after=600, again=True).factor(0, 9, step) for step in (599, 600, 1199, 1200)] == [1, 0.1, 0.1, 0.1**2]
    True
    >>> [Drop(after=600, again=True, wait=600).factor(0, 9, step) for step in (1199, 1200, 1800)] == [1, 0.1, 0.1**2]
    True
    """

    name: ClassVar[str] = "drop"
    after: int = 1000  # steps at the full rate
    gamma: float = 0.1  # what the rate is multiplied with afterwards
    again: bool = added(False)  # whether it is multiplied again after each further such number of steps
    wait: int = added(0)  # steps before the first that count

    def __post_init__(self) -> None:
        least = 1 if self.again else 0
        require(self.after >= least, f"schedule.after must be at least {least} steps but got {self.after}.")
        require(self.wait >= 0, f"schedule.wait must be at least 0 steps but got {self.wait}.")
        _require_factor(self.gamma)

    def factor(self, epoch: float, epochs: int, step: int) -> float:
        counted = max(0, step - self.wait)
        if self.again:
            return float(self.gamma ** (counted // self.after))
        return 1.0 if counted < self.after else self.gamma


@dataclass(frozen=True)
class Cosine:
    """Fall to zero along half a cosine, step by step."""

    name: ClassVar[str] = "cosine"

    def factor(self, epoch: float, epochs: int, step: int) -> float:
        return 0.5 * (1 + math.cos(math.pi * epoch / epochs))


@dataclass(frozen=True)
class WarmupStableDecay:
    """Rise linearly from zero, which is the rate of the first step, stay, and fall linearly to zero."""

    name: ClassVar[str] = "wsd"
    warmup: float = 0.1  # share of the training in which the rate rises
    decay: float = 0.2  # share of the training in which it falls

    def __post_init__(self) -> None:
        require(
            self.warmup >= 0 and self.decay >= 0 and self.warmup + self.decay <= 1,
            f"schedule.warmup + schedule.decay must lie in [0, 1] but are {self.warmup} and {self.decay}.",
        )

    def factor(self, epoch: float, epochs: int, step: int) -> float:
        done = epoch / epochs
        rise = done / self.warmup if self.warmup else 1.0
        fall = (1 - done) / self.decay if self.decay else 1.0
        return min(1.0, rise, fall)


Schedule = Constant | StepDecay | MultiStep | Drop | Cosine | WarmupStableDecay
