"""Choose among candidates on validation data, by named rules, with and without group labels.

Each rule of ``Rule`` divides the validation samples into groups:

- ``worst_group``: by label and attributes, which somebody must have labelled; the worst group counts (ULE, section 4).
- ``worst_class``: by label alone; the worst class counts.
- ``mined_group``: by label and by whether a biased model is right, since a shortcut misleads where it is wrong; the
  mean over groups counts. Not the worst: wrong labels are among a model's mistakes, too.
- ``mean``: all samples are one group.
- ``swapped`` and ``swapped_worst``: by label. The samples are images whose cue was swapped in from another class
  (parts/swapping.py): conflicting images made to order. The mean over classes counts, or the worst class. Choose on
  other copies than those trained on: a model is better on copies that it was trained on.

``BestOnMined`` chooses among the weights of one training.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypedDict

import torch
from torch import Tensor, nn

from unspur.data.base import Split, groups_of
from unspur.errors import UnspurError, require
from unspur.train.loop import outputs
from unspur.train.losses import cross_entropy
from unspur.train.moments import Carry, Moment
from unspur.train.session import Session

GroupRule = Literal["worst_group", "worst_class", "mined_group", "mean"]  # of ordinary validation images
Rule = Literal[GroupRule, "swapped", "swapped_worst"]
BY_LABEL: tuple[Rule, ...] = ("worst_class", "swapped", "swapped_worst")
BY_MEAN: tuple[Rule, ...] = ("mined_group", "swapped")

FEW = 10  # a mined group with fewer samples more likely holds wrong labels than samples that a shortcut misleads


def validation_groups(rule: Rule, val: Split, biased_wrong: Tensor | None = None) -> Tensor:
    """The group of each validation sample, from 0; -1 for one that counts in no group.

    ``biased_wrong`` says, for ``mined_group``, which samples a biased model gets wrong.
    """
    if not len(val):
        raise UnspurError("There is no validation data to choose on; hold some out, or name one setting only.")
    if rule == "mean":
        return torch.zeros(len(val), dtype=torch.long)
    if rule in BY_LABEL:
        group: Tensor = val.y.unique(return_inverse=True)[1]
        return group
    if rule == "worst_group":
        require(
            bool(val.attributes),
            "worst_group needs validation data with attributes, and these have none; use one that does not, such as "
            "worst_class.",
        )
        return groups_of(val).id
    if biased_wrong is None:
        raise UnspurError("mined_group needs a biased model's mistakes on the validation data.")
    return mined_groups(val.y, biased_wrong)


def mined_groups(y: Tensor, wrong: Tensor) -> Tensor:
    """Samples by label and by whether a biased model is wrong; -1 where a class has fewer than FEW mistakes.

    >>> y, wrong = torch.tensor([0] * 12 + [1] * 3), torch.tensor([True] * 10 + [False] * 2 + [True, False, False])
    >>> mined_groups(y, wrong).tolist()
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, -1, 2, 2]
    """
    _, group, sizes = (2 * y + wrong).unique(return_inverse=True, return_counts=True)
    few = wrong & (sizes[group] < FEW)
    kept = group[~few].unique(return_inverse=True)[1]
    return torch.full_like(group, -1).masked_scatter(~few, kept)


def few_mined_warnings(y: Tensor, wrong: Tensor) -> list[str]:
    """A sentence if too little of every class was mined for ``mined_groups`` to make a group of it.

    >>> y = torch.tensor([0] * 12 + [1] * 12)
    >>> few_mined_warnings(y, torch.arange(24) < 10)  # ten mistakes in class 0 are enough
    []
    """
    if bool((torch.bincount(y[wrong], minlength=1) >= FEW).any()):
        return []
    return [
        f"Of {len(y):,} validation images {int(wrong.sum())} were mined, in no class {FEW} or more: the choice was "
        "made by the accuracy on each class alone, which a shortcut may raise."
    ]


def group_accuracies(correct: Tensor, group: Tensor) -> Tensor:
    """The accuracy of each candidate on each group: (candidates, samples) to (candidates, groups).

    >>> group_accuracies(torch.tensor([[True, False, True]]), torch.tensor([1, 1, 0]))
    tensor([[1.0000, 0.5000]])
    """
    counted = group >= 0
    membership = torch.nn.functional.one_hot(group[counted]).float()
    return correct[:, counted].float() @ membership / membership.sum(0)


def scores(rule: Rule, correct: Tensor, group: Tensor) -> Tensor:
    """What ``rule`` gives each candidate, from what it gets right and each sample's group.

    >>> correct, group = torch.tensor([[True, False, True], [True, True, True]]), torch.tensor([1, 1, 0])
    >>> scores("worst_group", correct, group), scores("mined_group", correct, group)
    (tensor([0.5000, 1.0000]), tensor([0.7500, 1.0000]))
    """
    accuracy = group_accuracies(correct, group)
    return accuracy.mean(1) if rule in BY_MEAN else accuracy.amin(1)


def choose(rule: Rule, correct: Tensor, group: Tensor) -> int:
    """The candidate with the highest score; ties go to the best mean over groups, then to accuracy, then to the first.

    With a hundred groups the worst is often at zero for all candidates, and accuracy alone would favour the shortcut.

    >>> a, b, c = [True, True, False, False], [True, True, True, False], [True, False, True, False]
    >>> choose("worst_group", torch.tensor([a, b, c]), torch.tensor([0, 0, 1, 1]))  # 0, 0.5, 0.5; then 0.75 against 0.5
    1
    >>> follows, sees = [True, True, True, True, False, False], [True, True, False, False, True, False]
    >>> choose("worst_group", torch.tensor([follows, sees]), torch.tensor([0, 0, 0, 0, 1, 2]))  # both 0; then 1/3, 1/2
    1
    """
    score, mean = scores(rule, correct, group).tolist(), correct.double().mean(1).tolist()
    over_groups = group_accuracies(correct, group).mean(1).tolist()
    return max(range(len(score)), key=lambda number: (score[number], over_groups[number], mean[number], -number))


def val_scores(model: nn.Module, val: Split | None, mined: Tensor | None, session: Session) -> dict[str, float]:
    """Accuracy and loss on the mined and on the other validation samples; on all of them if either group is empty."""
    if val is None or not len(val):
        return {}
    return _group_means(*_losses_and_hits(model, val, session), mined)


def _losses_and_hits(model: nn.Module, split: Split, session: Session) -> tuple[Tensor, Tensor]:
    seen = [
        (cross_entropy(logits, batch).cpu(), (logits.argmax(1) == batch.y).cpu())
        for batch, logits in outputs(model, split, session.device)
    ]
    losses, hits = (torch.cat(parts).double() for parts in zip(*seen, strict=True))
    return losses, hits


def _group_means(losses: Tensor, hits: Tensor, mined: Tensor | None) -> dict[str, float]:
    if mined is None or not mined.any() or mined.all():
        return {"val_accuracy": float(hits.mean()), "val_loss": float(losses.mean())}
    return {
        f"val_{group}_{name}": float(values[members].mean())
        for group, members in (("mined", mined), ("other", ~mined))
        for name, values in (("accuracy", hits), ("loss", losses))
    }


ENOUGH = 20  # mined samples: a half of them chooses the weights, and ten are few
FIRST, SECOND = slice(0, None, 2), slice(1, None, 2)  # mined samples by their places
# Standard errors that chance exceeds one time in forty (one-sided, known deviation). One in twenty would be too many:
# where both halves choose the same weights, samples that chose them test them, and chance passes up to twice as often.
LEVEL = 1.96


def level_of(n: int) -> float:
    """``LEVEL`` for a deviation estimated from ``n`` samples: the 97.5 % quantile of Student's t (Fisher's expansion).

    >>> [round(level_of(n), 2) for n in (10, 20, 1000)]  # tables of t: 2.26, 2.09, 1.96
    [2.26, 2.09, 1.96]
    """
    z, free = LEVEL, n - 1
    return z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)


def clearly_lower(losses: Tensor, than: Tensor) -> bool:
    """Whether the mean of ``losses`` is lower than that of the same samples' ``than`` by more than chance explains.

    >>> clearly_lower(torch.tensor([0.9, 0.8, 0.9]), than=torch.ones(3))
    True
    >>> clearly_lower(torch.tensor([0.1, 1.0, 1.0]), than=torch.ones(3))  # one sample alone
    False
    """
    gains = than - losses
    return bool(gains.mean() > level_of(len(gains)) * gains.std() / len(gains) ** 0.5)


class Selection(TypedDict, total=False):
    """How the weights of a result were chosen."""

    by: str
    why: str  # there was nothing to choose by
    step: int
    loss: float  # of the chosen, on mined validation samples
    mined: int  # validation samples
    of: int
    loss_before: float
    loss_after: float


class BestOnMined(Carry):
    """Remembers the weights with the lowest loss on mined samples of a validation set; the first of equal ones.

    Every other mined sample chooses. Whether the choice is better than the weights before is tested on the rest, and
    the other way round (the rest choose, and those that chose before test), both at once: the best of twenty looks
    better than it is on the samples that chose it, and half of a few samples would see little. Samples that were not
    mined do not count: weights that are better on them may just follow the shortcut. Needs no group labels.
    """

    saved: ClassVar[tuple[str, ...]] = ("best", "other_best")
    judges: ClassVar[bool] = True

    def __init__(self, model: nn.Module, val: Split | None, mined: Tensor | None, session: Session) -> None:
        self.model, self.val, self.mined, self.session = model, val, mined, session
        self.best: dict[str, Any] | None = None  # by the first half
        self.other_best: Tensor | None = None  # losses of the best by the second half
        self.step = 0

    def see(self, moment: Moment) -> None:
        self.step = moment.step + 1

    def figures(self) -> dict[str, float]:
        """Score the weights as they are now, and keep them if none were better."""
        if self._why_not():
            return {}
        losses, hits = self._scored(self.model)
        mined = losses[self.mined]
        if self.other_best is None or mined[SECOND].mean() < self.other_best[SECOND].mean():
            self.other_best = mined
        if self.best is None or mined[FIRST].mean() < self.best["losses"][FIRST].mean():
            weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
            self.best = {"model": weights, "step": self.step, "losses": mined}
        return _group_means(losses, hits, self.mined)

    def restore(self, before: nn.Module | None = None) -> Selection:
        """Give the model its best weights back and say how they were chosen.

        If these are not clearly better than the weights of ``before``, the model before all steps, it gets those back
        instead: mined samples are few (23 of 5,000 on Colored MNIST at 0.5 %), and one of them may decide the mean.
        """
        if self.best is None:
            return {"by": "the last step", "why": self._why_not() or "The training had no step."}
        assert self.val is not None and self.mined is not None  # or nothing would have been scored
        weights, step, losses = self.best["model"], self.best["step"], self.best["losses"]
        found: Selection = {"mined": len(losses), "of": len(self.val)}
        if before is not None:
            first = self._scored(before)[0][self.mined]
            found |= {"loss_before": float(first.mean()), "loss_after": float(losses.mean())}
            assert self.other_best is not None  # there is one wherever there is a best
            unseen = torch.cat([losses[SECOND], self.other_best[FIRST]])
            if not clearly_lower(unseen, than=torch.cat([first[SECOND], first[FIRST]])):
                weights, step, losses = before.state_dict(), 0, first
        self.model.load_state_dict(weights)
        return {"by": "mined validation samples", "step": step, "loss": float(losses.mean()), **found}

    def _scored(self, model: nn.Module) -> tuple[Tensor, Tensor]:
        assert self.val is not None
        return _losses_and_hits(model, self.val, self.session)

    def _why_not(self) -> str | None:
        if self.val is None or self.mined is None or not len(self.val):
            return "There is no validation set."
        if not ENOUGH <= self.mined.sum() < len(self.val):
            taken = f"Mining took {int(self.mined.sum())} of the {len(self.val)} validation samples"
            return f"{taken}; to choose by them takes {ENOUGH}, and not all."
        return None
