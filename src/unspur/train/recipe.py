"""How to optimise: an optimiser, its learning-rate schedule and when to stop, as plain frozen dataclasses."""

from __future__ import annotations

import importlib.util
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from unspur.errors import require
from unspur.train.schedules import Constant, Schedule


def _require_momentum(momentum: float) -> None:
    require(0 <= momentum < 1, f"momentum must be at least 0 and below 1 but got {momentum}.")


LARGEST_RATE = torch.finfo(torch.float32).max  # weights cannot hold larger numbers


def require_rate(name: str, rate: float | None) -> None:
    """Raise an error for a number that cannot be a learning rate; None means that the rate is not known yet."""
    require(
        rate is None or 0 < rate <= LARGEST_RATE,
        f"{name} must be above 0 and at most {LARGEST_RATE:.2g} but got {rate}.",
    )


@dataclass(frozen=True)
class Recipe(ABC):
    """What every optimiser has in common; use SGD, Adam, AdamW or Adadelta."""

    name: ClassVar[str] = ""
    lr: float = 0.01  # learning rate
    epochs: int = 4  # passes over the training set, at most
    batch_size: int = 128  # over all devices together
    weight_decay: float = 0.0
    schedule: Schedule = Constant()  # constant, step, multistep, drop, cosine or wsd
    until_accuracy: float | None = None  # stop once the training accuracy of an epoch's end reaches this
    until_loss: float | None = None  # stop once the training loss, cross-entropy for most methods, falls to this
    l1: float = 0.0  # times the sum of all parameters' magnitudes, added to the loss
    asam: float = 0.0  # radius rho of adaptive sharpness-aware minimisation, which takes two passes a step; 0: off

    def __post_init__(self) -> None:
        require_rate("lr", self.lr)
        require(self.epochs >= 0, f"epochs must be at least 0 but got {self.epochs}.")
        require(self.batch_size >= 1, f"batch_size must be at least 1 but got {self.batch_size}.")
        require(0 <= self.weight_decay < math.inf, f"weight_decay must be a number from 0 but got {self.weight_decay}.")
        require(0 <= self.l1 < math.inf, f"l1 must be a number from 0 but got {self.l1}.")
        require(0 <= self.asam < math.inf, f"asam must be a number from 0 but got {self.asam}.")
        accuracy = self.until_accuracy
        require(accuracy is None or 0 < accuracy <= 1, f"until_accuracy must lie in (0, 1] but got {accuracy}.")
        require(
            self.until_loss is None or 0 < self.until_loss < math.inf,
            f"until_loss must be a number above 0 but got {self.until_loss}.",
        )

    def rate(self, epoch: float, step: int) -> float:
        """The learning rate ``epoch`` epochs (a fraction counts) and ``step`` steps into the training."""
        return self.lr * self.schedule.factor(epoch, self.epochs, step)

    def reached(self, accuracy: float, loss: float) -> bool:
        """Whether every stop rule that is set holds."""
        rules = []
        if self.until_accuracy is not None:
            rules.append(accuracy >= self.until_accuracy)
        if self.until_loss is not None:
            rules.append(loss <= self.until_loss)
        return bool(rules) and all(rules)

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """A torch optimiser over ``parameters``, which adds the derivative of the L1 penalty before each step."""
        made = self.build(parameters)
        if self.l1:
            made.register_step_pre_hook(partial(_add_l1, self.l1))
        return made

    def require_installed(self) -> None:  # noqa: B027 (most need nothing but torch)
        """Raise an error, before anything is trained, if the optimiser needs a package that is not installed."""

    @abstractmethod
    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The bare torch optimiser over ``parameters``."""


@torch.no_grad()
def _add_l1(strength: float, optimiser: torch.optim.Optimizer, args: object, kwargs: object) -> None:
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                parameter.grad.add_(parameter.sign(), alpha=strength)


@dataclass(frozen=True)
class SGD(Recipe):
    """Stochastic gradient descent with momentum."""

    name: ClassVar[str] = "sgd"
    momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_momentum(self.momentum)

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class Adam(Recipe):
    """Adam, with L2 regularisation as weight decay."""

    name: ClassVar[str] = "adam"
    lr: float = 1e-3

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=self.lr, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class AdamW(Recipe):
    """Adam with decoupled weight decay; its defaults are PyTorch's."""

    name: ClassVar[str] = "adamw"
    lr: float = 1e-3
    weight_decay: float = 0.01

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=self.lr, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class Adadelta(Recipe):
    """Adadelta; its defaults are those of PyTorch's own MNIST example."""

    name: ClassVar[str] = "adadelta"
    lr: float = 1.0
    batch_size: int = 64  # over all devices together

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adadelta(parameters, lr=self.lr, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class Kron(Recipe):
    """SGD preconditioned by Kronecker factors (PSGD; large-LR D.4), of the package pytorch-optimizer.

    Its balancing of the factors is off: it draws from NumPy's global generator, which would make runs unrepeatable.
    """

    name: ClassVar[str] = "kron"
    lr: float = 1e-3
    momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_momentum(self.momentum)

    def require_installed(self) -> None:
        # Without opt_einsum torch multiplies the factors from left to right, which takes 64 GiB for a small network.
        here = importlib.util.find_spec("pytorch_optimizer") is not None and torch.backends.opt_einsum.is_available()
        needs = "The optimiser kron needs the packages pytorch-optimizer and opt_einsum"
        require(here, f"{needs}; install them with pip install 'unspur[kron]'.")

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        self.require_installed()
        from pytorch_optimizer import Kron as Preconditioned

        # Without a dtype the factors take the weights' dtype, which checkpoints can hold.
        options: dict[str, Any] = {"weight_decay": self.weight_decay, "precondition_dtype": None, "balance_prob": 0.0}
        made: torch.optim.Optimizer = Preconditioned(parameters, lr=self.lr, momentum=self.momentum, **options)
        return made


Optimiser = SGD | Adam | AdamW | Kron | Adadelta


def recipes(spec: Any, prefix: str = "") -> Iterator[tuple[str, Optimiser]]:
    """Every recipe among the settings of a method and of its parts, by key."""
    for field in fields(spec):
        value, key = getattr(spec, field.name), prefix + field.name
        if isinstance(value, Recipe):
            yield key, value  # type: ignore[misc]
        elif is_dataclass(value):
            yield from recipes(value, key + ".")


@dataclass(frozen=True)
class Steps:
    """How to optimise for a number of steps instead of epochs."""

    name: ClassVar[str] = "steps"
    steps: int = 1000
    lr: float = 1e-3  # learning rate
    batch_size: int = 256
    optimiser: Literal["adam", "sgd"] = "adam"  # sgd has momentum 0.9

    def __post_init__(self) -> None:
        require(self.steps >= 1, f"{self.name}.steps must be at least 1 but got {self.steps}.")
        rate = self.lr
        require(math.isfinite(rate) and rate > 0, f"{self.name}.lr must be a positive number but got {rate}.")
        require(self.batch_size >= 2, f"{self.name}.batch_size must be at least 2 but got {self.batch_size}.")

    @property
    def recipe(self) -> Recipe:
        """The same as a recipe for the training loop, which gets the number of steps from the order of samples."""
        kind = SGD if self.optimiser == "sgd" else Adam
        return kind(lr=self.lr, batch_size=self.batch_size, epochs=1)
