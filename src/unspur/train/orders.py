"""Which samples a training sees when: in passes over the data, or drawn with given shares."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from unspur.core.seeds import seeded, stream
from unspur.data.base import Batch, Split
from unspur.train.recipe import Recipe
from unspur.train.session import Session


class Place(NamedTuple):
    """Where a training is: its data, batch size, stage and session, from which all randomness comes."""

    split: Split
    batch_size: int  # over all ranks together
    stage: str
    session: Session

    def part(self, index: Tensor) -> Tensor:
        """This rank's samples of a batch."""
        fabric = self.session.fabric
        return index[fabric.global_rank :: fabric.world_size]


class Drawn(NamedTuple):
    """This rank's part of a batch, and the size of the whole."""

    batch: Batch
    size: int


class Order(Protocol):
    """A training goes in rounds; after each it writes a line to the log, saves a checkpoint and may stop.

    The samples of a round depend on the session's seed, the stage and the round's number alone, so a resumed training
    repeats an interrupted round exactly.
    """

    @property
    def counts(self) -> str:
        """What the log counts: "epoch" or "step"."""

    def rounds(self, n: int, recipe: Recipe, ranks: int) -> Sequence[int]:
        """The number of steps in each round."""

    def batches(self, place: Place, number: int, first: int, steps: int) -> Generator[Drawn, None, None]:
        """The batches of round ``number``, whose first step is ``first``; noise is drawn from its own stream."""


def epoch_batches(n: int, batch_size: int, generator: torch.Generator, ranks: int = 1) -> list[Tensor]:
    """Places 0 to n - 1 in batches, each once, in random order.

    A last batch with fewer than two samples for each rank joins the one before it: batch normalisation needs two.

    >>> [len(b) for b in epoch_batches(9, 4, torch.Generator())]
    [4, 5]
    """
    batches = list(torch.randperm(n, generator=generator).split(batch_size))
    if len(batches) > 1 and len(batches[-1]) < 2 * ranks:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


@dataclass(frozen=True, eq=False)
class Passes:
    """Every sample once per epoch, in random order; with ``times``, each sample as often as it says."""

    counts: ClassVar[str] = "epoch"
    times: Tensor | None = None  # a whole number for each sample
    by_rank: bool = True  # whether streams are named by rank even on one device; ULE's figures were made without

    def rounds(self, n: int, recipe: Recipe, ranks: int) -> Sequence[int]:
        n = n if self.times is None else int(self.times.sum())
        steps = len(epoch_batches(n, recipe.batch_size, torch.Generator(), ranks))
        return [steps] * recipe.epochs

    def batches(self, place: Place, number: int, first: int, steps: int) -> Generator[Drawn, None, None]:
        split, size, stage, session = place
        ranks, order = session.fabric.world_size, stream(session.seed, stage, number, "order")
        if self.times is None:
            batches = epoch_batches(len(split), size, order, ranks)
        else:
            repeated = torch.arange(len(split)).repeat_interleave(self.times)
            batches = [repeated[index] for index in epoch_batches(len(repeated), size, order, ranks)]
        yield from self.drawn(place, number, batches)

    def drawn(self, place: Place, number: int, batches: Sequence[Tensor]) -> Generator[Drawn, None, None]:
        """This rank's part of each of the batches of epoch ``number``, moved at random."""
        split, _, stage, session = place
        seed, rank = session.seed, (session.fabric.global_rank,) if self.by_rank else ()
        moves = stream(seed, stage, number, "augment", *rank)
        with seeded(seed, stage, number, *rank):
            parts = [place.part(index) for index in batches]
            for index, batch in zip(batches, split.batches(parts, session.device, moves), strict=True):
                yield Drawn(batch, len(index))


class Draws:
    """Samples drawn with replacement, each by its share, for a number of steps (default: as many as passes take)."""

    counts: ClassVar[str] = "step"

    def __init__(self, shares: Tensor, steps: int | None = None, every: int | None = None) -> None:
        """A round ends after every ``every`` steps (default: as many as a pass over the samples takes)."""
        self.until = shares.double().cumsum(0)
        self.steps, self.every = steps, every

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """``count`` sample numbers."""
        at = torch.rand(count, dtype=torch.float64, generator=generator) * self.until[-1]
        return torch.searchsorted(self.until, at, right=True).clamp_(max=len(self.until) - 1)

    def index(self, place: Place, step: int) -> Tensor:
        """The sample numbers of one step's batch; they depend on ``place`` and ``step`` alone."""
        return self.sample(place.batch_size, stream(place.session.seed, place.stage, step))

    def rounds(self, n: int, recipe: Recipe, ranks: int) -> Sequence[int]:
        a_pass = max(1, round(n / recipe.batch_size))
        steps = a_pass * recipe.epochs if self.steps is None else self.steps
        every = self.every or a_pass
        return [min(every, steps - first) for first in range(0, steps, every)]

    def batches(self, place: Place, number: int, first: int, steps: int) -> Generator[Drawn, None, None]:
        split, size, stage, session = place
        rank = (session.fabric.global_rank,) if session.fabric.global_rank else ()
        for step in range(first, first + steps):
            moves = stream(session.seed, stage, step, "augment", *rank)
            batch = split.batch(place.part(self.index(place, step)), session.device, moves)
            with seeded(session.seed, stage, step, "noise", *rank):
                yield Drawn(batch, size)


class Even(Draws):
    """Batches with equally many samples of every group (to within one), drawn from each group with replacement."""

    def __init__(self, group: Tensor, steps: int | None = None, every: int | None = None) -> None:
        """``group`` has the number of each sample's group, from 0 and without gaps."""
        super().__init__(equal_shares(group), steps, every)
        self.members = group.argsort(stable=True)  # the samples of group 0, then those of group 1, ...
        self.sizes = torch.bincount(group)
        self.first = self.sizes.cumsum(0) - self.sizes

    def index(self, place: Place, step: int) -> Tensor:
        generator, groups = stream(place.session.seed, place.stage, step), len(self.sizes)
        begin = int(torch.randint(groups, (), generator=generator))  # the groups that get one more sample change
        return self.drawn((torch.arange(place.batch_size) + begin) % groups, generator)

    def drawn(self, group: Tensor, generator: torch.Generator) -> Tensor:
        """A sample number of each of these groups."""
        at = torch.rand(len(group), dtype=torch.float64, generator=generator) * self.sizes[group]
        return self.members[self.first[group] + at.long()]


class Turns(Even):
    """Every batch from one group: all groups in turn, in a changing order; the last turn is always completed."""

    def index(self, place: Place, step: int) -> Tensor:
        groups = len(self.sizes)
        turn, at = divmod(step, groups)
        order = torch.randperm(groups, generator=stream(place.session.seed, place.stage, turn, "turn"))
        generator = stream(place.session.seed, place.stage, step)
        return self.drawn(order[at].expand(place.batch_size), generator)

    def rounds(self, n: int, recipe: Recipe, ranks: int) -> Sequence[int]:
        rounds = list(super().rounds(n, recipe, ranks))
        if rounds:
            rounds[-1] += -sum(rounds) % len(self.sizes)
        return rounds


def equal_shares(group: Tensor) -> Tensor:
    """Shares with which every group, by its number, is drawn equally often.

    >>> equal_shares(torch.tensor([0, 0, 0, 1])).tolist()
    [0.3333333333333333, 0.3333333333333333, 0.3333333333333333, 1.0]
    """
    return 1 / torch.bincount(group)[group].double()
