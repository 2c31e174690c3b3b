"""What methods that train the last layer of a frozen network share: features, a grid of heads, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import Diverged, UnspurError, require
from unspur.models.base import head_of
from unspur.parts.features import features_of, require_linear_head
from unspur.parts.heads import Eq3, Head, HeadBatch, Pairs
from unspur.parts.select import Rule, choose, scores
from unspur.train.orders import epoch_batches
from unspur.train.session import Session


class Plan(NamedTuple):
    """How a grid of heads is trained."""

    lams: Sequence[float]
    lrs: Sequence[float]
    l2s: Sequence[float]
    epochs: int
    every: int  # epochs from one look at the validation set to the next
    batch_size: int
    momentum: float
    loss: Eq3


class ChosenBy(NamedTuple):
    """What decides which head is the best."""

    rule: Rule
    of: Tensor  # the group of each validation sample


class Cached(NamedTuple):
    """Features of the training and the validation set, and both heads as they start."""

    x: Tensor
    targets: Tensor  # one-hot labels: (classes, samples)
    val_x: Tensor | None
    val_y: Tensor
    student: Head
    teacher: Head
    sees: Tensor | None  # (2, features): those that are the student's, and those that are the teacher's; None: all


def require_trainable(plan: Plan) -> None:
    """Raise an error for settings with which no head can be trained."""
    for name, values in (("lams", plan.lams), ("lrs", plan.lrs), ("l2s", plan.l2s)):
        require(len(values) >= 1, f"{name} needs at least one value.")
    for lam in plan.lams:
        require(0 <= lam <= 1, f"lams must lie in [0, 1] but got {lam}.")
    for lr in plan.lrs:
        require(lr > 0, f"lrs must be positive but got {lr}.")
    for l2 in plan.l2s:
        require(l2 >= 0, f"l2s must be at least 0 but got {l2}.")
    for name, count in (("epochs", plan.epochs), ("every", plan.every), ("batch_size", plan.batch_size)):
        require(count >= 1, f"{name} must be at least 1 but got {count}.")
    require(0 <= plan.momentum < 1, f"momentum must lie in [0, 1) but got {plan.momentum}.")


def cached(teacher: nn.Module, student: nn.Module, train: Split, val: Split | None, session: Session) -> Cached:
    """What the grid needs when the two networks differ in their heads alone."""
    first, second = (_head(network, train, session) for network in (student, teacher))
    x = features_of(teacher, train, session, "features")
    targets = functional.one_hot(train.y, len(second.weight)).to(x).T.contiguous()
    if val is None or not len(val):
        return Cached(x, targets, None, train.y[:0], first, second, None)
    return Cached(x, targets, features_of(teacher, val, session, "val-features"), val.y, first, second, None)


def cached_apart(teacher: nn.Module, student: nn.Module, train: Split, val: Split | None, session: Session) -> Cached:
    """The same for two networks with features of their own: the teacher's, and the student's beside them."""
    data = cached(teacher, student, train, val, session)
    other = features_of(student, train, session, "student-features")
    mine, theirs = data.x.shape[1], other.shape[1]
    sees = torch.zeros(2, mine + theirs).to(data.x)
    sees[0, mine:] = sees[1, :mine] = 1
    return data._replace(
        x=torch.cat([data.x, other], 1),
        val_x=None if data.val_x is None else functional.pad(data.val_x, (0, theirs)),
        student=data.student._replace(weight=functional.pad(data.student.weight, (mine, 0))),
        teacher=data.teacher._replace(weight=functional.pad(data.teacher.weight, (0, theirs))),
        sees=sees,
    )


@torch.inference_mode()
def search(
    plan: Plan,
    data: Cached,
    groups: ChosenBy | None,
    *,
    stage: str,
    session: Session,
    weight: Tensor | None = None,
) -> GridSearch:
    """Train the whole grid at once, and keep the best of all points and epochs on the validation set.

    ``groups`` says what is best; without it the only point is kept as it is at the end. ``weight`` is the weight of
    each training sample in the cross-entropy; None: all weigh the same. Resumable: an epoch's order comes from the seed
    alone.
    """
    settings = plan.lams, plan.lrs, plan.l2s
    pairs = Pairs(*settings, data.student, data.teacher, momentum=plan.momentum, loss=plan.loss, sees=data.sees)
    require(
        groups is not None or len(pairs.points) == 1,
        f"Choosing among {len(pairs.points)} settings needs validation data; hold some out, or fix every setting.",
    )
    found, done = GridSearch(pairs), 0
    if state := session.load(stage):
        pairs.load(state["pairs"])
        found.load(state["found"])
        done = state["epoch"]
    share = None if weight is None else (weight / weight.mean()).to(data.x)
    for epoch in range(done, plan.epochs):
        batches = epoch_batches(len(data.x), plan.batch_size, stream(session.seed, stage, epoch, "order"))
        for chosen in batches:
            index = chosen.to(data.x.device)
            pairs.step(HeadBatch(data.x[index], data.targets[:, index], 1.0 if share is None else share[index]))
        if (epoch + 1) % plan.every == 0 or epoch + 1 == plan.epochs:
            if not pairs.finite().any():
                raise Diverged(stage, (epoch + 1) * len(batches))
            session.log(stage, epoch=epoch + 1, **found.look(epoch + 1, data, groups))
            session.save(stage, {"pairs": pairs.state(), "found": found.state(), "epoch": epoch + 1})
        session.progress(stage, (epoch + 1) / plan.epochs)
    return found


class GridSearch:
    """The best of a grid so far, and the best score of each of its points."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.best: dict[str, Any] = {"score": -1.0, "mean": -1.0}
        self.table: list[dict[str, Any]] = [{**point._asdict(), "score": None, "epoch": None} for point in pairs.points]

    def look(self, epoch: int, data: Cached, groups: ChosenBy | None) -> dict[str, float]:
        """Compare the teachers, as they are after ``epoch``, with the best so far; return what to log of the best."""
        if groups is None or data.val_x is None:
            self._keep(0, epoch=epoch, score=None)
            return {}
        alive = self.pairs.finite()
        parts = [self.pairs.predictions(part).cpu() for part in data.val_x.split(1000)]
        right = (torch.cat(parts, 1) == data.val_y) & alive[:, None]
        score = scores(groups.rule, right, groups.of).tolist()
        for row, own, lives in zip(self.table, score, alive.tolist(), strict=True):
            if lives and (row["score"] is None or own > row["score"]):
                row |= {"score": own, "epoch": epoch}
        number = choose(groups.rule, right, groups.of)
        mean = float(right[number].double().mean())
        if (score[number], mean) > (self.best["score"], self.best["mean"]):
            self._keep(number, epoch=epoch, score=score[number], mean=mean, right=right[number])
        return {"val_score": self.best["score"], "val_accuracy": self.best["mean"]}

    def _keep(self, number: int, **figures: Any) -> None:
        student, teacher = self.pairs.heads(number)
        self.best = figures | {"point": number, "student": student._asdict(), "teacher": teacher._asdict()}

    @property
    def right(self) -> Tensor:
        """Which validation samples the best teacher gets right."""
        right: Tensor = self.best["right"]
        return right

    def give(self, teacher: nn.Module, student: nn.Module | None = None) -> None:
        """Put the best heads into the networks; where features stand side by side, the student's come last."""
        set_head(teacher, **self.best["teacher"])
        if student is not None:
            width = head_of(student).in_features
            weight, bias = self.best["student"]["weight"][:, -width:], self.best["student"]["bias"]
            set_head(student, weight, bias)

    def chosen(self) -> dict[str, Any]:
        """The best setting, its epoch and its score."""
        point = self.pairs.points[self.best["point"]]
        return {**point._asdict(), "epoch": self.best["epoch"], "score": self.best["score"]}

    def state(self) -> dict[str, Any]:
        return {"best": self.best, "table": self.table}

    def load(self, state: dict[str, Any]) -> None:
        self.best, self.table = state["best"], state["table"]


def check_head(network: nn.Module, train: Split, device: torch.device | str = "cpu") -> nn.Linear:
    """The last layer of ``network``, after checking on samples of ``train`` that it is linear."""
    if not len(train):
        raise UnspurError("There is nothing to train on: the training set is empty.")
    some = train.batch(torch.arange(min(2, len(train))), device)
    return require_linear_head(network.to(device), some.x)


def _head(network: nn.Module, train: Split, session: Session) -> Head:
    head = check_head(network, train, session.device)
    return Head(head.weight.detach(), None if head.bias is None else head.bias.detach())


@torch.no_grad()
def set_head(model: nn.Module, weight: Tensor, bias: Tensor | None) -> None:
    """Give the last layer of ``model`` these weights."""
    head = head_of(model)
    head.weight.copy_(weight[:, : head.in_features])
    if bias is not None:
        head.bias.copy_(bias)
