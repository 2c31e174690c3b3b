"""DisEnt (arXiv:2107.01372): 1. One code for the class, one for its bias.  2. Swap the bias codes within a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, Method
from unspur.models.base import head_of
from unspur.parts.difficulty import RelativeDifficulty
from unspur.parts.disentangled import Codes, Disentangled
from unspur.parts.logistic import require_bias
from unspur.parts.mining import Mined
from unspur.parts.student import new_student
from unspur.train.loop import PASSES
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy, generalised_cross_entropy
from unspur.train.moments import Minimised
from unspur.train.recipe import Adam, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class DisEnt(Method):
    """Disentangled feature augmentation: LfF's weights on two codes, then bias codes that change places (DisEnt, 4).

    Both encoders begin with equal weights. Both layers read [core code, bias code]; that of the class learns with the
    weights of LfF, that of the bias by generalised cross-entropy, and no gradient enters the other's code. From the
    share ``after`` of the steps on, bias codes are also permuted within the batch, the bias's labels with them (Eq. 4).
    The result has the network's own form: the bias code is held at its mean over the training set, where the paper's
    model needs both networks.
    """

    name: ClassVar[str] = "disent"
    paper: ClassVar[str] = "arXiv:2107.01372"
    cost: ClassVar[str] = "2"
    one_device: ClassVar[bool] = True
    training: Optimiser = Adam(batch_size=256)
    q: float = 0.7  # of the generalised cross-entropy, in (0, 1]
    decay: float = 0.7  # what of a smoothed loss stays from one epoch to the next
    bias: float = 10.0  # lambda_dis: weight of the bias's loss
    swap: float = 1.0  # lambda_swap: weight of the losses of swapped codes
    swap_bias: float = 10.0  # lambda_swap_b: of the bias's loss within these
    after: float = 0.2  # share of the steps before codes are swapped: 10,000 of 50,000

    def __post_init__(self) -> None:
        require_finite(self)
        require(0 < self.q <= 1, f"q must lie in (0, 1] but got {self.q}.")
        require(0 <= self.decay < 1, f"decay must lie in [0, 1) but got {self.decay}.")
        require(0 <= self.after <= 1, f"after must lie in [0, 1] but got {self.after}.")
        weights = [self.bias, self.swap, self.swap_bias]
        require(min(weights) >= 0, f"bias, swap and swap_bias must be from 0 but got {weights}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """The result's head must have a place for the mean of the bias code."""
        require_bias(head_of(model))

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        both = Disentangled(model, new_student(None, model, train, session.seed), session.seed)
        difficulty, easy = RelativeDifficulty(train.y, self.decay, session.device), generalised_cross_entropy(self.q)
        begin = round(self.after * sum(PASSES.rounds(len(train), self.training, 1)))

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            codes = both.codes(model, batch.x)
            core, bias = both.answers(codes)
            losses = torch.stack([cross_entropy(bias, batch), cross_entropy(core, batch)])
            weight = difficulty.of_batch(losses, batch)
            loss = weight * losses[1] + self.bias * easy(bias, batch)
            if step >= begin:
                other = torch.randperm(len(batch.y)).to(batch.y.device)
                core_swapped, bias_swapped = both.answers(Codes(codes.core, codes.bias[other]))
                moved = batch._replace(y=batch.y[other])
                swapped = weight * cross_entropy(core_swapped, batch) + self.swap_bias * easy(bias_swapped, moved)
                loss = loss + self.swap * swapped
            return Minimised(loss, core, for_carry={"losses": losses})

        train_model(
            both, train, self.training, stage="training", session=session, objective=objective, carry=[difficulty]
        )
        both.give_head(train, session)
        return Fit(model.eval(), mining=Mined(difficulty.conflicting(), None, train.y))
