"""Find the training samples that a shortcut does not explain, without group labels (DCWP, section 4 and E.2).

Mining looks at the samples as they are stored, without augmentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypedDict

import torch
from torch import Tensor, nn

from unspur.core.progress import of_stage
from unspur.data.base import Split, aligned_with
from unspur.errors import UnspurError, require
from unspur.train.loop import outputs
from unspur.train.loop import train as train_model
from unspur.train.losses import Loss, confident_cross_entropy, cross_entropy, generalised_cross_entropy
from unspur.train.moments import Carry
from unspur.train.recipe import SGD, Adam, Optimiser
from unspur.train.session import Session

STAGE = "mining"
NAMED = 5  # classes that a sentence names; it counts the rest
GIVEN_UP = 0.5  # a class of which a larger share is mined was not learned: no shortcut misses most of a class


class MinedFacts(TypedDict, total=False):
    """How many samples were mined, in all and of each class."""

    mined: int
    mined_by_class: list[int]


class MiningQuality(TypedDict):
    """How many of the mined samples are bias-conflicting, and how many of those are mined; None where unknown."""

    precision: float | None
    recall: float | None


class Mined(NamedTuple):
    """Which samples are taken for bias-conflicting."""

    train: Tensor
    val: Tensor | None  # of the validation set, by the same biased model
    y: Tensor  # the training samples' labels

    def times(self, up: int) -> Tensor:
        """How often to show each training sample: mined ones ``up`` times, the others once."""
        return torch.where(self.train, up, 1)

    def facts(self) -> MinedFacts:
        """What a result says of it."""
        by_class = torch.bincount(self.y[self.train], minlength=int(self.y.max()) + 1).tolist()
        return {"mined": int(self.train.sum()), "mined_by_class": by_class}

    def artifacts(self) -> dict[str, Tensor]:
        """The mined samples' places in the training and in the validation set, as stored with the run."""
        parts = {"mined": self.train, "mined_val": self.val}
        return {name: taken.nonzero().squeeze(1) for name, taken in parts.items() if taken is not None}

    def warnings(self, names: Sequence[str] | None = None) -> list[str]:
        """A sentence for the classes of which nothing is mined, and one for those of which most is.

        Without ``names``, classes are called by their numbers.
        """
        labels: list[int] = self.y.unique().tolist()
        share = {label: float(self.train[self.y == label].double().mean()) for label in labels}
        called = {label: f"'{names[label]}'" if names else str(label) for label in labels}
        none = [called[label] for label in labels if share[label] == 0]
        most = [f"{called[label]} ({100 * share[label]:.0f} %)" for label in labels if share[label] > GIVEN_UP]
        said = []
        if none:
            said.append(f"No sample of {_classes(none)} was mined, so none of it is drawn more often.")
        if most:
            said.append(
                f"Most of {_classes(most)} was mined: the biased model gave that up, which says nothing of a shortcut. "
                "Lower the rate of its training, or take another miner."
            )
        return said


def _classes(names: Sequence[str]) -> str:
    """Classes by name, the first few where they are many.

    >>> _classes(["3"]), _classes(["1", "2", "4", "5", "6", "8"])
    ('class 3', 'classes 1, 2, 4, 5, 6 and 1 more')
    """
    more = len(names) - NAMED
    some = ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"class{'es' if len(names) > 1 else ''} {some}"


def _require_training(recipe: Optimiser) -> None:
    """Raise an error if nothing is trained: an untrained model has taken no shortcut."""
    require(recipe.epochs >= 1, f"mining.training.epochs must be at least 1 but got {recipe.epochs}.")


@dataclass(frozen=True)
class GCE:
    """What a model trained with the generalised cross-entropy gets wrong (Eq. 13).

    E.2 gives the 2,000 steps but no optimiser; the authors' script for Colored MNIST takes SGD. Adam at the main
    network's rate gave up a class, or learnt the conflicting samples (results/README.md).
    """

    name: ClassVar[str] = "gce"
    q: float = 0.7  # in (0, 1]: how strongly easy samples count for more
    training: Optimiser = SGD(lr=0.01, epochs=9, batch_size=256)  # about E.2's 2,000 steps: 1,935 of Colored MNIST

    def __post_init__(self) -> None:
        require(0 < self.q <= 1, f"mining.q must lie in (0, 1] but got {self.q}.")
        _require_training(self.training)

    def mine(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Mined:
        return misclassified(model, train, val, self.training, session, generalised_cross_entropy(self.q))


@dataclass(frozen=True)
class EarlyStopped:
    """What a model trained with cross-entropy for a short time gets wrong (section 5.3).

    The paper does not say when it stops; here it is after one epoch. With as many epochs as GCE it is Table 2 without
    (e).
    """

    name: ClassVar[str] = "erm"
    training: Optimiser = SGD(lr=0.01, epochs=1, batch_size=256)

    def __post_init__(self) -> None:
        _require_training(self.training)

    def mine(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Mined:
        return misclassified(model, train, val, self.training, session)


@dataclass(frozen=True)
class EpochEnsemble:
    """What a model gives a low probability, on average over its epochs (Zhao et al., 2021; DCWP E.2 for CIFAR10-C).

    The model is trained on the samples of each batch whose label it gives a probability above ``confidence``; the
    others count as 0 in the batch's mean. The score of a sample is the mean over the epochs' ends of 1 - p(label). DCWP
    does not say for how long to train; by default as long as it pretrains, 10,000 steps.
    """

    name: ClassVar[str] = "ensemble"
    score: float = 0.8  # in (0, 1): a sample whose score is above this is mined
    confidence: float = 0.05  # in [0, 1): the model learns from what it gives a higher probability
    training: Optimiser = Adam(epochs=57, batch_size=256)  # 10,000 steps of CIFAR10-C

    def __post_init__(self) -> None:
        require(0 < self.score < 1, f"mining.score must lie in (0, 1) but got {self.score}.")
        require(0 <= self.confidence < 1, f"mining.confidence must lie in [0, 1) but got {self.confidence}.")
        _require_training(self.training)

    def mine(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Mined:
        scores = _Scores(model, train, val, session)
        loss = confident_cross_entropy(self.confidence)
        train_model(model, train, self.training, stage=STAGE, session=session, loss=loss, carry=[scores])
        high = scores.mean() > self.score
        return Mined(high[: len(train)], high[len(train) :] if val is not None else None, train.y)


Miner = GCE | EarlyStopped | EpochEnsemble


class _Scores(Carry):
    """1 - p(label) of every sample after each epoch."""

    saved: ClassVar[tuple[str, ...]] = ("of_epoch",)
    judges: ClassVar[bool] = True

    def __init__(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> None:
        self.model = model
        self.splits, self.session = [train] if val is None else [train, val], session
        self.of_epoch: list[Tensor] = []

    def figures(self) -> Mapping[str, Any]:
        parts = [
            1 - logits.softmax(1).gather(1, batch.y.unsqueeze(1)).squeeze(1).cpu()
            for split in self.splits
            for batch, logits in outputs(self.model, split, self.session.device)
        ]
        self.of_epoch.append(torch.cat(parts))
        return {}

    def mean(self) -> Tensor:
        return torch.stack(self.of_epoch).mean(0)


def misclassified(
    model: nn.Module,
    train: Split,
    val: Split | None,
    recipe: Optimiser,
    session: Session,
    loss: Loss = cross_entropy,
    stage: str = STAGE,
) -> Mined:
    """Train a biased model in place, and take the samples that it gets wrong to be bias-conflicting."""
    train_model(model, train, recipe, stage=stage, session=session, loss=loss)
    return Mined(wrong(model, train, session), wrong(model, val, session) if val is not None else None, train.y)


def wrong(model: nn.Module, split: Split, session: Session) -> Tensor:
    """Which samples ``model`` gets wrong."""
    seen = outputs(model, split, session.device, progress=of_stage(session.progress, "mistakes"))
    parts = [(logits.argmax(1) != batch.y).cpu() for batch, logits in seen]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.bool)


def require_both(
    mined: Tensor,
    recipe: str = "mining.training",
    instead: str = ", or take another miner (mining=gce, erm or ensemble)",
) -> None:
    """Raise an error that says what to do if nothing or everything is mined: there are no two groups to balance.

    ``recipe`` is the setting of the biased model's training, ``instead`` what else helps.
    """
    if not mined.any():
        raise UnspurError(
            f"Mining found no bias-conflicting sample among {len(mined)}: the biased model explains them all. Train it "
            f"less ({recipe}.epochs){instead}."
        )
    if mined.all():
        raise UnspurError(
            f"Mining took all {len(mined)} samples for bias-conflicting: the biased model explains none. Train it more "
            f"({recipe}.epochs){instead}."
        )


Reading = Literal["sample", "group"]


def upweighted(mined: Tensor, up: float, reading: Reading = "sample") -> Tensor:
    """How often to draw each sample, as shares of 1, so that a batch's mean loss estimates Eq. 14 up to a factor.

    'group' is Eq. 14 as printed: the mined samples together are drawn ``up`` times as often as the others together.
    'sample' is the sentence after it, and what the authors do: each mined sample is drawn ``up`` times as often as each
    other one.

    >>> mined = torch.tensor([True, False, False, False])
    >>> upweighted(mined, 3).tolist()
    [0.5, 0.16666666666666666, 0.16666666666666666, 0.16666666666666666]
    >>> upweighted(mined, 3, "group").tolist()
    [0.75, 0.08333333333333333, 0.08333333333333333, 0.08333333333333333]
    """
    weight = torch.where(mined, up, 1.0).double()
    if reading == "group":
        weight = weight / torch.where(mined, mined.sum(), (~mined).sum())
    return weight / weight.sum()


def mining_quality(mined: Tensor, train: Split) -> MiningQuality:
    """Precision and recall of the sample numbers ``mined``, by the attributes of ``train``; None where unknown.

    Truly bias-conflicting is a sample that does not follow the training correlation. This is for reports: no method may
    look at it.

    >>> train = Split(torch.zeros(5, 1), torch.tensor([0, 0, 0, 1, 1]), {"a": torch.tensor([1, 1, 0, 0, 0])})
    >>> mining_quality(torch.tensor([2, 3]), train)  # sample 2 alone breaks the rule that class 0 has a = 1
    {'precision': 0.5, 'recall': 1.0}
    """
    aligned = aligned_with(train, train) if train.attributes else None
    if aligned is None:
        return {"precision": None, "recall": None}
    found, conflicting = int((~aligned[mined]).sum()), int((~aligned).sum())
    return {
        "precision": found / len(mined) if len(mined) else None,
        "recall": found / conflicting if conflicting else None,
    }
