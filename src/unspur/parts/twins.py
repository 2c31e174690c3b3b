"""Two networks that each learn from one half of the data and relabel the other (XRM, arXiv:2309.16748, Algorithm 1)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.data.base import Batch, Split
from unspur.parts.group_losses import group_means
from unspur.parts.mining import Mined, wrong
from unspur.parts.pairs import Pair
from unspur.train.loop import train as train_model
from unspur.train.moments import Carry, Minimised, Moment
from unspur.train.recipe import Optimiser
from unspur.train.session import Session


class Relabelled(Carry):
    """The labels that the twins learn from; a label changes for good where the twin that does not learn it disagrees.

    It does so with ``flip_chance`` of that twin's largest probability.
    """

    saved: ClassVar[tuple[str, ...]] = ("y",)

    def __init__(self, y: Tensor, device: torch.device) -> None:
        self.original = y.to(device)
        self.y = self.original.clone()

    def flipped(self) -> float:
        """The share of labels that are not the original ones."""
        return float((self.y != self.original.to(self.y.device)).double().mean())

    def see(self, moment: Moment) -> None:
        top, label = moment.found.for_carry["held_out"].softmax(1).max(1)
        flip = torch.rand(len(top)).to(top.device) < flip_chance(top, moment.logits.shape[1])
        self.y = self.y.to(top.device)
        index = moment.batch.index
        self.y[index] = torch.where(flip, label, self.y[index])


def flip_chance(top: Tensor, classes: int) -> Tensor:
    """(p - 1/K) K / (K - 1) of a twin's largest probability: 0 for a twin that knows nothing, 1 for a certain one.

    >>> flip_chance(torch.tensor([0.25, 0.625, 1.0]), 4)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return (top - 1 / classes) * classes / (classes - 1)


def class_balanced(logits: Tensor, y: Tensor) -> Tensor:
    """The sum over the classes of a batch of their mean cross-entropy, as in the authors' code."""
    losses = functional.cross_entropy(logits, y, reduction="none")
    return group_means(losses, y, logits.shape[1])[y.unique()].sum()


class Found(NamedTuple):
    """What the twins found at one rate."""

    rate: float
    mined: Mined  # where either twin is wrong about the original label
    flipped: float  # the share of labels that changed
    empty: int  # classes with one environment alone, in training or validation data

    @property
    def rank(self) -> tuple[bool, float]:
        """The higher the better: environments in every class first, then changed labels."""
        return self.empty == 0, self.flipped


def train_twins(
    pair: Pair, train: Split, val: Split | None, coin: Tensor, recipe: Optimiser, stage: str, session: Session
) -> Found:
    """Train both twins and cross-check them; the kept one learns from the samples where ``coin`` is true."""
    labels, own = Relabelled(train.y, session.device), coin.to(session.device)

    def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
        seen, mine = pair.both(model, batch.x), own[batch.index][:, None]
        held_in, held_out = torch.where(mine, seen.kept, seen.helper), torch.where(mine, seen.helper, seen.kept)
        loss = class_balanced(held_in, labels.y.to(batch.y.device)[batch.index])
        return Minimised(loss, held_in, for_carry={"held_out": held_out})

    train_model(pair, train, recipe, stage=stage, session=session, objective=objective, carry=[labels])
    pair.eval()
    either = [
        torch.stack([wrong(twin, split, session) for twin in pair.networks]).any(0)
        for split in (train, val)
        if split is not None
    ]
    mined = Mined(either[0], either[1] if val is not None else None, train.y)
    splits = [part for part in (train, val) if part is not None]
    empty = sum(alone(part.y, wrongly) for part, wrongly in zip(splits, either, strict=True))
    return Found(recipe.lr, mined, labels.flipped(), empty)


def alone(y: Tensor, wrongly: Tensor) -> int:
    """How many classes have one environment alone.

    >>> alone(torch.tensor([0, 0, 1, 1]), torch.tensor([True, False, True, True]))
    1
    """
    return 2 * len(y.unique()) - len(torch.stack([y, wrongly.long()], 1).unique(dim=0))
