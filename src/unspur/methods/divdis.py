"""DivDis (arXiv:2202.03418): 1. Heads that fit the labels and differ on other images.  2. A few labels choose one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from unspur.core.options import require_finite
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.models.base import evaluating, head_of
from unspur.parts.diverse_heads import ManyHeads, disputed, divergence, shared_information
from unspur.train.loop import train as train_model
from unspur.train.moments import Minimised
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class DivDis(LogitsMethod):
    """Diversify and disambiguate: heads that fit labels and share little elsewhere; a few labels choose (DivDis, 3).

    The mean over heads of the cross-entropy, plus lambda_1 = 10 times the mean over pairs of heads of their mutual
    information on unlabelled images, plus lambda_2 = 10 times the mean over heads of the divergence of their mean
    answers there from the labels' shares. The unlabelled images are those for validation, of which as many are drawn as
    training images; with labels of the few on which the heads differ most the best head is chosen. The
    authors' code measures the divergence from the heads' own mean answer on labelled images. Where validation
    images follow the shortcut as training images do, heads have nothing to differ on.
    """

    name: ClassVar[str] = "divdis"
    paper: ClassVar[str] = "arXiv:2202.03418"
    cost: ClassVar[str] = "2"
    takes_ticked: ClassVar[bool] = True
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD()
    heads: int = 2
    information: float = 10.0  # lambda_1: weight of the mutual information
    shares: float = 10.0  # lambda_2: weight of the divergence
    labels: int = 16  # validation images whose labels choose

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.heads >= 2, f"heads must be at least 2 but got {self.heads}.")
        require(self.labels >= 1, f"labels must be at least 1 but got {self.labels}.")
        weights = [self.information, self.shares]
        require(min(weights) >= 0, f"information and shares must be from 0 but got {weights}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be other images, and features before a head."""
        head_of(model)
        there = val is not None and len(val) > 1
        require(there, "divdis needs validation images, on which its heads are to differ; hold some out (data.val).")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        assert val is not None  # or the check would have stopped
        many = ManyHeads(model, self.heads, session.seed)
        share = torch.bincount(train.y, minlength=head_of(model).out_features).to(session.device) / len(train)

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            count = len(batch.y)
            other = val.batch(torch.randint(len(val), (count,)), batch.x.device)
            logits = many.logits(model, torch.cat([batch.x, other.x]))
            fitted = functional.cross_entropy(logits[:, :count].flatten(0, 1), batch.y.repeat(self.heads))
            chance = logits[:, count:].softmax(2)
            shared, apart = shared_information(chance), divergence(chance, share)
            logged = {"fitted": fitted, "shared": shared, "apart": apart}
            return Minimised(fitted + self.information * shared + self.shares * apart, logits[0, :count], logged)

        train_model(many, train, self.training, stage="training", session=session, objective=objective)
        with evaluating(many), torch.no_grad():
            parts = val.batches(torch.arange(len(val)).split(250), session.device)
            chance = torch.cat([many.logits(many, part.x).softmax(2).cpu() for part in parts], 1)
        asked = disputed(chance, self.labels)
        right = (chance[:, asked].argmax(2) == val.y[asked]).double().mean(1)
        many.give_head(int(right.argmax()))
        return Fit(model.eval(), figures={"chosen_head": int(right.argmax()), "head_accuracies": right.tolist()})
