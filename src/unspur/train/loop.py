"""The shared training loop: minimise the mean of a per-sample loss over a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from unspur.core.seeds import seeded, stream
from unspur.data.base import Batch, Split
from unspur.errors import Diverged, UnspurError
from unspur.models.base import memory_format
from unspur.train.losses import cross_entropy
from unspur.train.recipe import Recipe
from unspur.train.session import Session
from unspur.train.sharpness import ascended

Loss = Callable[[Tensor, Batch], Tensor]


class Moment(NamedTuple):
    """What a ``watch`` callback sees after each step (under DDP: of its own rank's part of the batch)."""

    model: nn.Module
    stage: str
    epoch: int
    step: int  # counted over the whole stage, from 0
    split: Split
    batch: Batch
    logits: Tensor
    losses: Tensor


Watch = Callable[[Moment], None]


def epoch_batches(n: int, batch_size: int, generator: torch.Generator, ranks: int = 1) -> list[Tensor]:
    """Sample numbers of one epoch's batches, every sample once, in random order.

    A last batch with fewer than two samples for each rank joins the one before it: batch normalisation needs two.

    >>> [len(b) for b in epoch_batches(9, 4, torch.Generator())]
    [4, 5]
    """
    batches = list(torch.randperm(n, generator=generator).split(batch_size))
    if len(batches) > 1 and len(batches[-1]) < 2 * ranks:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def train(
    model: nn.Module,
    split: Split,
    recipe: Recipe,
    *,
    stage: str,
    seed: int,
    session: Session,
    loss: Loss = cross_entropy,
    watch: Watch | None = None,
) -> None:
    """Train ``model`` in place on ``split``, saving a checkpoint each epoch and resuming from the last one.

    Each epoch's order, dropout and augmentation come from ``seed``, ``stage`` and the epoch's number alone, so that a
    resumed training repeats the interrupted epoch exactly. A loss that is not finite raises Diverged.
    """
    if not len(split):
        raise UnspurError(f"There is nothing to train on: the training set of stage '{stage}' is empty.")
    work = _Stage(split, recipe, stage, seed, session, loss, watch)
    model.to(memory_format=memory_format(model))  # type: ignore[call-overload]
    optimiser = recipe.optimiser([p for p in model.parameters() if p.requires_grad])
    done, finished = 0, False
    if state := session.load(stage):
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        done, finished = state["epoch"], state["finished"]
    module, optimiser = session.fabric.setup(model, optimiser)
    while done < recipe.epochs and not finished:
        accuracy, mean_loss = work.epoch(done, module, optimiser)
        _equalise_buffers(session.fabric, model)
        done += 1
        if reached := reaching(model, split, recipe, session, loss):
            finished, (accuracy, mean_loss) = True, reached
        seen = session.observer.figures() if session.observer else {}
        session.log(stage, epoch=done, loss=mean_loss, accuracy=accuracy, lr=optimiser.param_groups[0]["lr"], **seen)
        state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "epoch": done, "finished": finished}
        session.save(stage, state)
    model.eval()
    if not _answers(model, split, session):  # the last step's weights have had no loss that could tell
        batches = epoch_batches(len(split), recipe.batch_size, torch.Generator(), session.fabric.world_size)
        raise Diverged(stage, done * len(batches))


def _answers(model: nn.Module, split: Split, session: Session) -> bool:
    """Whether the logits of some samples are finite."""
    _, logits = next(outputs(model, split.subset(torch.arange(min(len(split), 100))), session.device))
    return bool(torch.isfinite(logits).all())


class _Stage(NamedTuple):
    split: Split
    recipe: Recipe
    name: str
    seed: int
    session: Session
    loss: Loss
    watch: Watch | None

    def epoch(self, epoch: int, module: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[float, float]:
        """One pass over the split; the running accuracy and loss."""
        fabric, name, n = self.session.fabric, self.name, len(self.split)
        order = stream(self.seed, name, epoch, "order")
        batches = epoch_batches(n, self.recipe.batch_size, order, fabric.world_size)
        total = torch.zeros(2, device=fabric.device)
        observer = self.session.observer
        looking = [look for look in (self.watch, observer and observer.see) if look]
        module.train()
        parts = [chosen[fabric.global_rank :: fabric.world_size] for chosen in batches]
        moves = stream(self.seed, name, epoch, "augment", fabric.global_rank)
        with seeded(self.seed, name, epoch, fabric.global_rank):
            for number, batch in enumerate(self.split.batches(parts, fabric.device, moves)):
                step = epoch * len(batches) + number
                for group in optimiser.param_groups:
                    group["lr"] = self.recipe.rate(epoch + number / len(batches), step)
                logits = module(batch.x)
                losses = self.loss(logits, batch)
                # DDP averages the ranks' gradients; scaled so, their average is that of the whole batch's mean loss.
                scale = fabric.world_size / len(batches[number])
                mean = losses.sum() * scale
                if not _finite(fabric, mean):
                    raise Diverged(name, step)
                optimiser.zero_grad()
                fabric.backward(mean)
                if self.recipe.asam:
                    with ascended(module, self.recipe.asam):
                        optimiser.zero_grad()
                        fabric.backward(self.loss(module(batch.x), batch).sum() * scale)
                optimiser.step()
                total += torch.stack([(logits.argmax(1) == batch.y).sum(), losses.detach().sum()])
                for look in looking:
                    look(Moment(module, name, epoch, step, self.split, batch, logits.detach(), losses.detach()))
                self.session.progress(name, (step + 1) / (self.recipe.epochs * len(batches)))
        accuracy, mean_loss = (_sum(fabric, total) / n).tolist()
        return accuracy, mean_loss


def measure(model: nn.Module, split: Split, session: Session, loss: Loss = cross_entropy) -> tuple[float, float]:
    """Accuracy and mean loss of ``model`` on ``split`` in evaluation mode."""
    total = torch.zeros(2, dtype=torch.float64)
    for batch, logits in outputs(model, split, session.device):
        total += torch.stack([(logits.argmax(1) == batch.y).sum(), loss(logits, batch).sum()]).cpu()
    accuracy, mean_loss = (total / len(split)).tolist()
    return accuracy, mean_loss


def reaching(
    model: nn.Module, split: Split, recipe: Recipe, session: Session, loss: Loss = cross_entropy
) -> tuple[float, float] | None:
    """Accuracy and mean loss of ``model`` on ``split`` if ``recipe`` has stop rules and they meet them, else None.

    An epoch's running figures are of weights that were still changing, so the samples are gone through again, but only
    as long as those to come can still make up for those seen: at a rule of 100 %, up to the first wrong one.
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
    model: nn.Module, split: Split, device: torch.device | str = "cpu", batch_size: int = 250
) -> Iterator[tuple[Batch, Tensor]]:
    """Each batch of ``split`` in order with the model's logits, in evaluation mode; the mode is put back.

    Batches are small, since what stays in a CPU's cache is faster.
    """
    was_training = model.training
    model.eval()
    try:
        for batch in split.batches(torch.arange(len(split)).split(batch_size), device):
            yield batch, model(batch.x)
    finally:
        model.train(was_training)


def _sum(fabric: Fabric, value: Tensor) -> Tensor:
    """The sum of ``value`` over all ranks."""
    if fabric.world_size == 1:
        return value
    total = fabric.all_reduce(value, reduce_op="sum")
    assert isinstance(total, Tensor)
    return total


def _finite(fabric: Fabric, value: Tensor) -> bool:
    # All ranks must agree to stop, or the others would wait for this one for ever.
    return bool(torch.isfinite(_sum(fabric, value.detach())))


def _equalise_buffers(fabric: Fabric, model: nn.Module) -> None:
    """Give every rank rank 0's buffers: DDP keeps weights equal, but each rank's batch statistics are its own."""
    if fabric.world_size > 1:
        for buffer in model.buffers():
            buffer.copy_(fabric.broadcast(buffer))
