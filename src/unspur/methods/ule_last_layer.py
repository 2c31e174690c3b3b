"""ULE on the last layer: 1. Features of a frozen network.  2. A whole grid at once.  3. The best on validation data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from unspur.core.options import require_finite
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, Method
from unspur.parts.heads import Compare, Eq3
from unspur.parts.last_layer import Cached, ChosenBy, Plan, cached, cached_apart, check_head, require_trainable, search
from unspur.parts.opposition import Distance, Over
from unspur.parts.select import GroupRule, few_mined_warnings, validation_groups
from unspur.parts.student import new_student
from unspur.train.session import Session

STAGE = "heads"


@dataclass(frozen=True)
class ULELastLayer(Method):
    """Unlearning from experience in the last layer of a frozen network, over a grid of settings (ULE, 3.1 and 4).

    The paper's grid is the default: 11 lambdas, 5 rates, standard and strong L2, 300 epochs, a look at the validation
    set every 10. All 110 teachers and 10 students train as one batched computation on features that are computed once.
    The setting and the epoch that are best by ``rule`` are kept. A single value fixes a setting.

    The saliency at the features is that of the largest logit, which for a linear head is the weight row of its class,
    so that nothing needs to be differentiated. A student of another architecture has other features: then what is
    compared is E = A A^T of the heads' outputs, the heads being the layers that train (3.1, 4.4).

    Where the paper is open: SGD with momentum 0.9 in batches of 128; standard and strong L2 are 1e-4 and 1, as in
    Sagawa et al., whom it cites; the student's head is drawn anew. ``mined_group`` takes for biased an ERM head
    with the strongest L2 of the grid. Both terms of Eq. 3 have the size of cross-entropy (``scale``), which they have
    not in `ule` from scratch: a lambda of the one is not a lambda of the other. A teacher's head of zeros, as vision
    transformers begin with, has no saliency yet and learns from cross-entropy until it has. Runs on one device.
    """

    name: ClassVar[str] = "ule_last_layer"
    paper: ClassVar[str] = "UnLearning from Experience"
    cost: ClassVar[str] = "frozen features"
    network: ClassVar[str] = "pretrained"
    own_stages: ClassVar[tuple[str, ...]] = ("student",)
    mixes: ClassVar[bool] = False
    one_device: ClassVar[bool] = True
    lams: tuple[float, ...] = tuple(step / 10 for step in range(11))  # lambda of Eq. 3, each in [0, 1]; 1 is ERM
    lrs: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # learning rates
    l2s: tuple[float, ...] = (1e-4, 1.0)  # L2 regularisation: standard, strong
    epochs: int = 300
    every: int = 10  # epochs from one look at the validation set to the next
    batch_size: int = 128
    momentum: float = 0.9
    rule: GroupRule = "mined_group"  # what is best: worst_group (needs attributes), mined_group, worst_class or mean
    student: str | None = None  # its architecture; none: the teacher's features, with a head drawn anew
    student_weights: str | None = None  # what it begins with, as arch.weights; none: its architecture's default
    over: Over = "batch"  # what N(.) takes its maximum over: the whole batch, or each sample
    distance: Distance = "mse"  # mse, or l1 (4.3.3)
    scale: Literal["none", "equal"] = (
        "equal"  # equal: L times CE / L, so that both have CE's size; none: the terms as they are
    )

    def __post_init__(self) -> None:
        require_trainable(self.plan)
        require_finite(self)

    @property
    def plan(self) -> Plan:
        """How the grid is trained."""
        compare: Compare = "saliency" if self.student is None else "activations"
        loss = Eq3(compare, self.over, self.distance, self.scale == "equal")
        return Plan(self.lams, self.lrs, self.l2s, self.epochs, self.every, self.batch_size, self.momentum, loss)

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """The networks must end in one linear layer, and there must be what the choice of settings needs."""
        require(
            self.student is not None or self.student_weights is None,
            "student_weights are those of a student of another architecture; name it with student, or leave them out.",
        )
        check_head(model, train)
        if self.student is not None:
            check_head(new_student(self.student, model, train, 0, self.student_weights), train)
        if val is not None and len(self.lams) * len(self.lrs) * len(self.l2s) > 1:
            validation_groups("mean" if self.rule == "mined_group" else self.rule, val)  # mistakes are not known yet

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        student = new_student(self.student, model, train, session.seed, self.student_weights)
        data = (cached if self.student is None else cached_apart)(model, student, train, val, session)
        figures: dict[str, Any] = {}
        warnings: list[str] = []
        groups = None
        if val is not None and data.val_x is not None:
            wrong = biased_mistakes(self.plan, data, session) if self.rule == "mined_group" else None
            groups = ChosenBy(self.rule, validation_groups(self.rule, val, wrong))
            figures = {"rule": self.rule} | ({} if wrong is None else {"mined": int(wrong.sum())})
            warnings = [] if wrong is None else few_mined_warnings(val.y, wrong)
        found = search(self.plan, data, groups, stage=STAGE, session=session)
        found.give(model, student)
        lams = sensitivity(found.table)
        figures |= {"chosen": found.chosen(), "sensitivity": lams, "grid": found.table}
        warnings += plain_warnings(found.chosen()["lam"], lams)
        stages = {"student": student.eval()}
        return Fit(model.eval(), stages, Baseline("student", "student"), warnings=warnings, figures=figures)

    def stage_model(self, stage: str, model: nn.Module, train: Split, seed: int) -> nn.Module:
        """A student for the teacher ``model``, to take the weights of the stage: those it began with are not needed."""
        return new_student(self.student, model, train, seed, None if self.student is None else "none")


def biased_mistakes(plan: Plan, data: Cached, session: Session) -> Tensor:
    """Which validation samples an ERM head with the grid's strongest L2 gets wrong, at the rate that makes them fewest.

    Strong regularisation leaves a head the features that are easiest to use. On drawn features with a shortcut its
    mistakes were conflicting samples nine times out of ten; those of the best ERM head of all were so four times.
    """
    plan = plan._replace(lams=(1.0,), l2s=(max(plan.l2s),))
    everybody = ChosenBy("mean", torch.zeros(len(data.val_y), dtype=torch.long))
    return ~search(plan, data, everybody, stage="biased", session=session).right


def plain_warnings(chosen: float, lams: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence if lambda was chosen by a tie, or is 1, which is plain training.

    ``lams`` is what ``sensitivity`` returns.

    >>> plain_warnings(0.2, [{"lam": 0.2, "score": 0.9}, {"lam": 1.0, "score": 0.8}])
    []
    """
    best = max((row["score"] for row in lams if row["score"] is not None), default=None)
    tied = [row["lam"] for row in lams if row["score"] == best]
    if len(lams) < 2 or best is None or (1.0 not in tied and len(tied) < 2):
        return []
    if 1.0 not in tied:
        return [
            f"Lambda {chosen:g} was chosen by a tie: on validation data {len(tied)} of {len(lams)} lambdas are best, "
            f"with {best:.4f}."
        ]
    how = (
        f"on validation data {len(tied)} of {len(lams)} lambdas are best, with {best:.4f}"
        if len(tied) > 1
        else f"it was the best of {len(lams)} on validation data, with {best:.4f}"
    )
    if chosen == 1:
        return [f"Lambda 1 was chosen, which is plain training, so that nothing was unlearned: {how}."]
    return [f"Lambda {chosen:g} was chosen by a tie with 1, which is plain training: {how}."]


def sensitivity(table: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The best score on validation data that was reached with each lambda.

    Figure 4 has the mean of three trainings for each lambda instead. A maximum over rates, L2 and epochs changes less
    from one lambda to the next: it shows how well each can do, not how safe it is to choose blindly.

    >>> rows = [{"lam": 0.0, "score": 0.5}, {"lam": 0.0, "score": 0.75}, {"lam": 0.5, "score": None}]
    >>> sensitivity(rows)
    [{'lam': 0.0, 'score': 0.75}, {'lam': 0.5, 'score': None}]
    """
    lams = dict.fromkeys(row["lam"] for row in table)
    known = {lam: [row["score"] for row in table if row["lam"] == lam and row["score"] is not None] for lam in lams}
    return [{"lam": lam, "score": max(scores, default=None)} for lam, scores in known.items()]
