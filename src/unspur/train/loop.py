"""The one training loop: minimise an objective over samples in some order, by a recipe, resumable."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from unspur.core.progress import Done
from unspur.data.base import Batch, Split
from unspur.errors import Diverged, UnspurError
from unspur.models.base import memory_format
from unspur.train.batch_norm import BATCHES, settle_batch_norm
from unspur.train.dead import ROUNDS, is_dead
from unspur.train.losses import Loss, cross_entropy
from unspur.train.moments import Carry, Minimised, Moment
from unspur.train.orders import Order, Passes, Place
from unspur.train.ranks import equalise_buffers, finite, summed
from unspur.train.recipe import Recipe
from unspur.train.session import Session
from unspur.train.sharpness import ascended

PASSES = Passes()


# An objective must be pure: its result may depend on its arguments, on torch's random state and on what is carried
# along, and it must change none of these (ASAM calls it twice per step). State that changes belongs in a Carry.
Objective = Callable[[nn.Module, Batch, int], Minimised]


def classify(loss: Loss) -> Objective:
    """An objective that minimises the mean of ``loss``, a loss of logits and labels."""

    def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
        logits = model(batch.x)
        return Minimised(loss(logits, batch), logits)

    return objective


def train(
    model: nn.Module,
    split: Split,
    recipe: Recipe,
    *,
    stage: str,
    session: Session,
    loss: Loss = cross_entropy,
    objective: Objective | None = None,
    order: Order = PASSES,
    carry: Sequence[Carry] = (),
) -> None:
    """Train ``model`` in place on ``split``, saving a checkpoint after each round and resuming from the last one.

    Without an ``objective`` the mean of ``loss`` is minimised; stop rules look at ``loss`` in any case. ``order`` says
    which samples come when, ``carry`` holds the state that changes with the training beside the model. A loss that is
    not finite raises Diverged. Training on several devices requires an objective whose loss is one value per sample.
    Batch norm is measured again at the end of training, and at the end of each round after which something is decided
    in evaluation mode. A network that died is not trained further, and the session records why.
    """
    if not len(split):
        raise UnspurError(f"There is nothing to train on: the training set of stage '{stage}' is empty.")
    model.to(memory_format=memory_format(model))  # type: ignore[call-overload]
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = recipe.optimiser(trained)
    at = _Progress.load(stage, session, model, optimiser, carry)
    module, optimiser = session.fabric.setup(model, optimiser)
    steps = order.rounds(len(split), recipe, session.fabric.world_size)
    place = Place(split, recipe.batch_size, stage, session)
    work = _Stage(place, recipe, objective or classify(loss), order, carry, steps, trained)
    judged = recipe.reached(1.0, 0.0) or any(carried.judges for carried in carry)
    while at.round < len(steps) and not at.finished and at.dead < ROUNDS:
        line = work.round(at.round, module, optimiser)
        equalise_buffers(session.fabric, model)
        at.round += 1
        at.settled = judged and work.settle(model, at.round)
        if reached := reaching(model, split, recipe, session, loss):
            at.finished, (line["accuracy"], line["loss"]) = True, reached
        at.dead = at.dead + 1 if is_dead(model, split, trained, session.device) else 0
        for carried in carry:
            line |= carried.figures()
        line |= session.observer.figures() if session.observer else {}
        counted = at.round if order.counts == "epoch" else sum(steps[: at.round])
        session.log(stage, **{order.counts: counted}, **line)
        at.save(stage, session, model, optimiser, carry)
    if at.round and not at.settled and work.settle(model, at.round):
        at.settled = True
        at.save(stage, session, model, optimiser, carry)
    if at.round < len(steps) and at.dead >= ROUNDS:
        session.stopped[stage] = (
            f"Stage '{stage}' stopped {sum(steps[: at.round]):,} steps into its {sum(steps):,}: its network is dead, "
            "which means that no image reaches its last layer any more; lower the learning rate."
        )
    model.eval()
    if not _answers(model, split, session):  # no loss was computed with the last step's weights
        raise Diverged(stage, sum(steps[: at.round]))


@dataclass
class _Progress:
    """How far a training has come: what its checkpoint holds beside model, optimiser and what is carried along."""

    round: int = 0
    finished: bool = False  # the stop rules hold
    settled: bool = False  # batch norm has been measured with these weights
    dead: int = 0  # rounds at whose ends the network was dead, without a break

    @classmethod
    def load(
        cls,
        stage: str,
        session: Session,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        carry: Sequence[Carry],
    ) -> _Progress:
        """Give everything the state of the last checkpoint, if there is one."""
        state = session.load(stage)
        if not state:
            return cls()
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        for carried, saved in zip(carry, state["carry"], strict=True):
            carried.load(saved)
        return cls(state["round"], state["finished"], state.get("settled", False), state.get("dead", 0))

    def save(
        self,
        stage: str,
        session: Session,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        carry: Sequence[Carry],
    ) -> None:
        states = {"model": model.state_dict(), "optimiser": optimiser.state_dict()}
        session.save(stage, states | vars(self) | {"carry": [carried.state() for carried in carry]})


def _answers(model: nn.Module, split: Split, session: Session) -> bool:
    """Whether the logits of some samples are finite."""
    _, logits = next(outputs(model, split.subset(torch.arange(min(len(split), 100))), session.device))
    return bool(torch.isfinite(logits).all())


@dataclass
class _Sums:
    """Sums over a round's samples; the log shows their means."""

    device: torch.device
    size: int = 0
    total: dict[str, Tensor] = field(default_factory=dict)

    def add(self, found: Minimised, batch: Batch, size: int) -> None:
        self.size += size
        values = {"loss": found.loss.sum() if found.loss.ndim else found.loss * len(batch.y)}
        if found.logits is not None:
            values["accuracy"] = (found.logits.argmax(1) == batch.y).sum()
        values |= {name: mean * len(batch.y) for name, mean in found.logged.items()}
        for name, value in values.items():
            self.total[name] = self.total.get(name, torch.zeros((), device=self.device)) + value

    def means(self, fabric: Fabric) -> dict[str, Any]:
        values = summed(fabric, torch.stack(list(self.total.values()))) / self.size
        return dict(zip(self.total, values.tolist(), strict=True))


class _Stage(NamedTuple):
    place: Place
    recipe: Recipe
    objective: Objective
    order: Order
    carry: Sequence[Carry]
    steps: Sequence[int]  # of each round
    trained: list[nn.Parameter]

    def round(self, number: int, module: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        """Train one round; return the running means and the rate."""
        split, _, stage, session = self.place
        fabric, sums = session.fabric, _Sums(session.device)
        first, count, all_steps = sum(self.steps[:number]), self.steps[number], sum(self.steps)
        module.train()
        with contextlib.closing(self.order.batches(self.place, number, first, count)) as drawn:
            for step, (batch, size) in enumerate(drawn, first):
                epoch = number + (step - first) / count if self.order.counts == "epoch" else self._epoch(step)
                for group in optimiser.param_groups:
                    group["lr"] = self.recipe.rate(epoch, step)
                found = self._step(module, optimiser, batch, size, step)
                sums.add(found, batch, size)
                moment = Moment(module, stage, number, step, split, batch, found, step + 1 == first + count)
                for carried in self.carry:
                    carried.see(moment)
                if session.observer and found.loss.ndim:
                    session.observer.see(moment)
                session.progress(stage, (step + 1) / all_steps)
        return sums.means(fabric) | {"lr": optimiser.param_groups[0]["lr"]}

    def settle(self, model: nn.Module, rounds: int) -> bool:
        """Measure batch norm after ``rounds`` rounds, on no more batches than they had."""
        return settle_batch_norm(model, self.place, self.order, min(BATCHES, sum(self.steps[:rounds])))

    def _epoch(self, step: int) -> float:
        """``step`` as a number of epochs, for schedules that count epochs where the order counts steps."""
        return self.recipe.epochs * step / sum(self.steps)

    def _step(
        self, module: nn.Module, optimiser: torch.optim.Optimizer, batch: Batch, size: int, step: int
    ) -> Minimised:
        found = self.objective(module, batch, step)
        mean = self._mean(found, size)
        if not finite(self.place.session.fabric, mean):
            raise Diverged(self.place.stage, step)
        optimiser.zero_grad()
        self._backward(mean)
        if self.recipe.asam:
            with ascended(module, self.recipe.asam):
                optimiser.zero_grad()
                self._backward(self._mean(self.objective(module, batch, step), size))
        optimiser.step()
        return found.detached()

    def _mean(self, found: Minimised, size: int) -> Tensor:
        # DDP averages the ranks' gradients. With this scale the average is the gradient of the whole batch's mean loss.
        ranks = self.place.session.fabric.world_size
        return found.loss.sum() * (ranks / size) if found.loss.ndim else found.loss

    def _backward(self, loss: Tensor) -> None:
        fabric = self.place.session.fabric
        # For the weights alone: an objective may have made the input differentiable, and nobody needs that gradient.
        only: dict[str, Any] = {"inputs": self.trained} if fabric.world_size == 1 else {}
        fabric.backward(loss, **only)


def measure(
    model: nn.Module, split: Split, session: Session, loss: Loss = cross_entropy, progress: Done | None = None
) -> tuple[float, float]:
    """Accuracy and mean loss of ``model`` on ``split`` in evaluation mode."""
    total = torch.zeros(2, dtype=torch.float64)
    for batch, logits in outputs(model, split, session.device, progress=progress):
        total += torch.stack([(logits.argmax(1) == batch.y).sum(), loss(logits, batch).sum()]).cpu()
    accuracy, mean_loss = (total / len(split)).tolist()
    return accuracy, mean_loss


def reaching(
    model: nn.Module, split: Split, recipe: Recipe, session: Session, loss: Loss = cross_entropy
) -> tuple[float, float] | None:
    """Accuracy and mean loss of ``model`` on ``split`` if ``recipe`` has stop rules and they meet them, else None.

    A round's running figures come from weights that were still changing, so the samples are evaluated again. This ends
    as soon as the remaining samples can no longer meet the rules: for a rule of 100 %, at the first wrong sample.
    """
    right, total, n = float(len(split)), 0.0, len(split)
    if not recipe.reached(1.0, 0.0):  # there are no rules
        return None
    for batch, logits in outputs(model, split, session.device):
        right -= float((logits.argmax(1) != batch.y).sum())
        total += float(loss(logits, batch).sum())
        if not recipe.reached(right / n, total / n):
            return None
    return right / n, total / n


@torch.no_grad()
def outputs(
    model: nn.Module,
    split: Split,
    device: torch.device | str = "cpu",
    batch_size: int = 250,
    progress: Done | None = None,
) -> Iterator[tuple[Batch, Tensor]]:
    """Each batch of ``split`` in order with the model's logits, in evaluation mode; the mode is restored afterwards.

    Batches are small: those that fit into a CPU's cache are faster.
    """
    was_training = model.training
    model.eval()
    order = torch.arange(len(split)).split(batch_size)
    try:
        for number, batch in enumerate(split.batches(order, device), 1):
            yield batch, model(batch.x)
            if progress:
                progress(number / len(order))
    finally:
        model.train(was_training)
