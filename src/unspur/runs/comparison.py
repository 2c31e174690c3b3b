"""What a comparison of methods holds, as it is stored and shown."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from unspur.runs.ranking import Rank

Choice = Literal["groups", "none"]  # what the choice may know of groups
Score = Literal["worst", "mean"]  # of a row: its worst group, or the mean over its groups


class Chosen(TypedDict):
    """What was chosen for a seed, and how it does on the test set."""

    seed: int
    folder: str
    candidate: int
    worst: float | None
    mean: float


class Spread(TypedDict):
    """A score over seeds."""

    mean: float
    deviation: float | None
    n: int


class MiningSpread(TypedDict):
    """How well a method's runs find the samples that go against the training correlation, where attributes tell."""

    precision: Spread | None
    recall: Spread | None


class Row(TypedDict):
    """A method on a data set."""

    method: str
    groups: str  # what of group labels it reads in training: "training", "validation" or "none"
    left_out: str
    diverged: int
    lost: list[int]  # seeds with which every candidate diverged: no score, and the last rank
    cost: float | None  # seconds over those of plain training, the mean over all its runs
    chosen: dict[Choice, list[Chosen]]
    worst: dict[Choice, Spread | None]
    mean: dict[Choice, Spread | None]
    mining: NotRequired[MiningSpread]  # of methods that mine or infer groups, in the runs chosen without group labels


class Block(TypedDict):
    """A data set with all methods."""

    dataset: str
    test: str
    arch: str
    rows: list[Row]


class Comparison(TypedDict):
    """What was compared, and who is best: ranks by the worst group, then the mean, over sets and seeds."""

    command: str
    commit: str | None
    seeds: list[int]
    candidates: int
    done: int
    of: int
    datasets: list[Block]
    ranks: dict[Choice, dict[str, Rank]]


def telling_score(block: Block) -> Score:
    """The worst group, or the mean over groups where the worst is at zero for most methods, as among a hundred."""
    worst = [spread["mean"] for row in block["rows"] if (spread := row["worst"]["none"])]
    return "worst" if sum(value > 0 for value in worst) > len(worst) / 2 else "mean"
