"""A loop counted in steps, over batches that are drawn with given shares instead of passes over the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from unspur.core.seeds import seeded, stream
from unspur.data.base import Batch, Split
from unspur.errors import Diverged, UnspurError, require
from unspur.train.session import Session

Objective = Callable[[nn.Module, Batch], Mapping[str, Tensor]]  # terms by name; their sum is minimised
Review = Callable[[int], Mapping[str, float]]  # what to log after so many steps


@dataclass(frozen=True)
class Steps:
    """How to optimise for a number of steps."""

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

    def build(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """The torch optimiser over ``parameters``."""
        if self.optimiser == "sgd":
            return torch.optim.SGD(parameters, lr=self.lr, momentum=0.9)
        return torch.optim.Adam(parameters, lr=self.lr)


class Draws:
    """Draws sample numbers, each with its share, with replacement."""

    def __init__(self, shares: Tensor) -> None:
        self.until = shares.double().cumsum(0)

    def __call__(self, count: int, generator: torch.Generator) -> Tensor:
        """``count`` sample numbers."""
        at = torch.rand(count, dtype=torch.float64, generator=generator) * self.until[-1]
        return torch.searchsorted(self.until, at, right=True).clamp_(max=len(self.until) - 1)


def step_samples(draws: Draws, recipe: Steps, stage: str, seed: int, step: int) -> Tensor:
    """The sample numbers of one step's batch, which depend on nothing else."""
    return draws(recipe.batch_size, stream(seed, stage, step))


def require_one_device(session: Session, who: str) -> None:
    """Stop when there are several processes: these loops draw and sample for one."""
    if session.fabric.world_size > 1:
        raise UnspurError(f"{who} runs on one device, but got {session.fabric.world_size}; use --devices 1.")


def train_steps(
    model: nn.Module,
    split: Split,
    recipe: Steps,
    draws: Draws,
    objective: Objective,
    *,
    stage: str,
    seed: int,
    session: Session,
    review: Review = lambda step: {},
    every: int = 100,
) -> None:
    """Minimise ``objective`` in place over what ``model`` has to train, on one device.

    Each ``every`` steps and at the end the terms' means since the last time and what ``review`` says are logged, and a
    checkpoint saved. A step's samples, augmentation and noise come from ``seed``, ``stage`` and its number alone, so
    that a resumed training takes the same steps. A loss that is not finite raises Diverged.
    """
    optimiser = recipe.build([p for p in model.parameters() if p.requires_grad])
    done = 0
    if state := session.load(stage):
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        done = state["step"]
    module, optimiser = session.fabric.setup(model, optimiser)
    terms: dict[str, list[Tensor]] = {}
    for step in range(done, recipe.steps):
        drawn = step_samples(draws, recipe, stage, seed, step)
        batch = split.batch(drawn, session.device, stream(seed, stage, step, "augment"))
        module.train()
        with seeded(seed, stage, step, "noise"):
            parts = objective(module, batch)
        loss = torch.stack(list(parts.values())).sum()
        if not torch.isfinite(loss):
            raise Diverged(stage, step)
        optimiser.zero_grad()
        session.fabric.backward(loss)
        optimiser.step()
        for name, value in parts.items():
            terms.setdefault(name, []).append(value.detach())
        if (step + 1) % every == 0 or step + 1 == recipe.steps:
            means = {name: float(torch.stack(values).mean()) for name, values in terms.items()}
            terms.clear()
            session.log(stage, step=step + 1, loss=sum(means.values()), **means, **review(step + 1))
            session.save(stage, _state(model, optimiser, step + 1))
        session.progress(stage, (step + 1) / recipe.steps)
    model.eval()


def _state(model: nn.Module, optimiser: torch.optim.Optimizer, step: int) -> dict[str, Any]:
    return {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step}


@torch.no_grad()
def settle_batch_norm(
    model: nn.Module, split: Split, draws: Draws, batch_size: int, *, seed: int, session: Session, batches: int = 50
) -> None:
    """Measure the means and variances of ``model``'s batch normalisation anew, on training batches from ``split``.

    A network that has lost weights has other activations than those that the stored figures describe.
    """
    kinds = nn.modules.batchnorm._BatchNorm
    layers = [m for m in model.modules() if isinstance(m, kinds) and m.running_mean is not None]
    momenta = [layer.momentum for layer in layers]
    model.to(session.device).eval()
    for layer in layers:
        layer.train()
        layer.reset_running_stats()
        layer.momentum = None  # the plain mean over all batches
    for number in range(batches if layers else 0):
        drawn = draws(batch_size, stream(seed, "batch norm", number))
        model(split.batch(drawn, session.device, stream(seed, "batch norm", number, "augment")).x)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    model.eval()
