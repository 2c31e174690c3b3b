"""SSA (arXiv:2204.02070): 1. Learn the attribute from validation data.  2. Predict it in training.  3. GroupDRO."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import nn

from unspur.data.base import Split, aligned_with, groups_of
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.parts.inferred_groups import Inferred, label_groups, train_on_groups
from unspur.parts.mining import Mined
from unspur.parts.pseudo_attributes import pseudo_attributes
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class SSA(LogitsMethod):
    """Spread spurious attributes: groups of training data from attributes of validation data (SSA, Algorithm 1).

    For each of three folds a network learns the attribute from half of the labelled data, and from the other folds
    where it is sure: 0.95 of probability for the smallest group, the surest of other groups, until all are as large.
    The other half chooses its round. GroupDRO trains on labels with predicted attributes, its round chosen by the
    labelled groups. Where a predicted attribute is rarer with the label than by chance counts as mined. One device.
    """

    name: ClassVar[str] = "ssa"
    paper: ClassVar[str] = "arXiv:2204.02070"
    cost: ClassVar[str] = "3 and more"
    needs_val_groups: ClassVar[bool] = True
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD(weight_decay=1e-4)  # of the result
    attribute: Optimiser = SGD()  # of the networks that learn the attribute; an epoch counts all samples
    folds: int = 3  # in which training data get their attributes
    least: float = 0.95  # probability from which a predicted attribute is learnt from

    def __post_init__(self) -> None:
        require(self.folds >= 2, f"folds must be at least 2 but got {self.folds}.")
        require(0 < self.least < 1, f"least must lie in (0, 1) but got {self.least}.")
        size = self.attribute.batch_size
        early = self.attribute.until_accuracy, self.attribute.until_loss
        require(
            early == (None, None),
            "ssa keeps the round that is best on labelled data it did not train on; leave attribute.until_accuracy and "
            "attribute.until_loss unset.",
        )
        require(size >= 2, f"attribute.batch_size must be at least 2 but got {size}: half of a batch is labelled data.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """The attribute must take several values."""
        assert val is not None  # the base has asked for its groups
        several = any(len(values.unique()) > 1 for values in val.attributes.values())
        require(
            several,
            "ssa learns an attribute of validation data, but all samples have the same one; label more, or use a "
            "method that needs none, such as xrm.",
        )
        require(len(train) >= self.folds, f"{len(train)} training samples are too few for {self.folds} folds.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        assert val is not None
        found = pseudo_attributes(model, train, val, self.folds, self.least, self.attribute, session)
        labelled = replace(train, attributes={"found": found})
        aligned = aligned_with(labelled, labelled)
        mined = torch.zeros(len(train), dtype=torch.bool) if aligned is None else ~aligned
        groups = Inferred(label_groups(train.y, found), groups_of(val).id)
        figures = train_on_groups(model, train, val, groups, self.training, session)
        return Fit(model, mining=Mined(mined, None, train.y), figures=figures, warnings=groups.warnings())
