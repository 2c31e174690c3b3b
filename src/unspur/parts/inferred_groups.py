"""Training on groups that nobody labelled: GroupDRO with them, keeping the round with the best worst group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from unspur.core.progress import of_stage
from unspur.data.base import Split
from unspur.parts.group_losses import GroupWeights
from unspur.parts.select import group_accuracies
from unspur.train.loop import outputs
from unspur.train.loop import train as train_model
from unspur.train.moments import Carry
from unspur.train.orders import Draws, equal_shares
from unspur.train.recipe import Optimiser
from unspur.train.session import Session

ETA, ADJUSTMENT = 0.01, 1.0  # the step size of GroupDRO's weights, and its C


class Inferred(NamedTuple):
    """The group of each training and each validation sample, as found."""

    train: Tensor  # from 0, without gaps
    val: Tensor | None

    @classmethod
    def by(cls, train: Split, environment: Tensor, val: Split | None = None, held: Tensor | None = None) -> Inferred:
        """By label and environment, ``held`` being those of the validation samples."""
        known = None if val is None or held is None else label_groups(val.y, held)
        return cls(label_groups(train.y, environment), known)

    def warnings(self) -> list[str]:
        """A sentence if training groups have a single sample: drawn as often as whole groups, it is memorised.

        >>> Inferred(torch.tensor([0, 0, 1]), None).warnings()[0].partition(",")[0]
        'Of 2 inferred groups 1 has a single training sample'
        """
        size = torch.bincount(self.train)
        lone = int((size == 1).sum())
        if not lone:
            return []
        have, it = ("has", "it is") if lone == 1 else ("have", "these are")
        return [
            f"Of {len(size)} inferred groups {lone} {have} a single training sample, and {it} drawn as often as whole "
            "groups: one mistake of the inference can be memorised."
        ]


def label_groups(y: Tensor, environment: Tensor) -> Tensor:
    """Samples by label and environment, numbered from 0 without gaps.

    >>> label_groups(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 0])).tolist()
    [0, 1, 2]
    """
    group: Tensor = torch.stack([y, environment.long()], 1).unique(dim=0, return_inverse=True)[1]
    return group


def all_logits(model: nn.Module, split: Split, session: Session) -> Tensor:
    """The logits of every sample of ``split``, as it is stored."""
    seen = outputs(model, split, session.device, progress=of_stage(session.progress, "logits"))
    return torch.cat([logits.float().cpu() for _, logits in seen])


class BestRound(Carry):
    """Remembers the weights with the highest accuracy in the worst validation group; the first of equal ones.

    With ``mean`` the mean over groups counts instead. Without validation groups the last weights are the result. The
    log shows the accuracy that counts, under the name ``shown``.
    """

    saved: ClassVar[tuple[str, ...]] = ("best",)
    judges: ClassVar[bool] = True

    def __init__(
        self,
        model: nn.Module,
        val: Split | None,
        group: Tensor | None,
        session: Session,
        *,
        mean: bool = False,
        shown: str = "val_inferred_groups",
    ) -> None:
        self.model, self.val, self.group, self.session, self.mean = model, val, group, session, mean
        self.shown = shown
        self.best: dict[str, Any] = {}

    def figures(self) -> Mapping[str, Any]:
        if self.val is None or self.group is None:
            return {}
        seen = outputs(self.model, self.val, self.session.device)
        right = torch.cat([(logits.argmax(1) == batch.y).cpu() for batch, logits in seen])
        by_group = group_accuracies(right[None], self.group)
        score = float(by_group.mean() if self.mean else by_group.min())
        if not self.best or score > self.best["score"]:
            weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
            self.best = {"score": score, "model": weights}
        return {self.shown: score}

    def restore(self) -> float | None:
        """Give the model its best weights back; return the accuracy that they were chosen by."""
        if not self.best:
            return None
        self.model.load_state_dict(self.best["model"])
        score: float = self.best["score"]
        return score


def train_on_groups(
    model: nn.Module, train: Split, val: Split | None, found: Inferred, recipe: Optimiser, session: Session
) -> dict[str, Any]:
    """GroupDRO on inferred groups; the model gets the weights of the round with the best worst validation group.

    Returns figures for the result: the size of each group, and that round's accuracy.
    """
    q = GroupWeights(found.train, ETA, ADJUSTMENT, session.device)
    best = BestRound(model, val, found.val, session)
    order = Draws(equal_shares(found.train))
    train_model(model, train, recipe, stage="training", session=session, objective=q.loss, order=order, carry=[q, best])
    return {"group_sizes": torch.bincount(found.train).tolist(), "worst_inferred_group": best.restore()}
