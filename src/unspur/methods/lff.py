"""LfF (arXiv:2007.02561): 1. A biased network learns what is easy.  2. Another learns the rest, beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, LogitsMethod
from unspur.parts.difficulty import RelativeDifficulty
from unspur.parts.mining import Mined
from unspur.parts.pairs import Pair
from unspur.parts.student import new_student
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy, generalised_cross_entropy
from unspur.train.moments import Minimised
from unspur.train.recipe import Adam, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class LfF(LogitsMethod):
    """Learning from failure: what a biased network finds hard counts more for another beside it (LfF, Algorithm 1).

    The biased one minimises generalised cross-entropy, the other cross-entropy weighted by L_b / (L_b + L_d) (Eq. 3).
    The authors' code has the first times q, which Adam does not notice; with SGD it is a slower biased network.
    As in the authors' code the weights are those of losses smoothed over epochs, of which the first counts in full, and
    divided by their class's largest. Both networks begin alike but for the head. What ends with a weight above 1/2
    counts as mined. Runs on one device.
    """

    name: ClassVar[str] = "lff"
    paper: ClassVar[str] = "arXiv:2007.02561"
    cost: ClassVar[str] = "2"
    one_device: ClassVar[bool] = True
    training: Optimiser = Adam(batch_size=256)  # of both networks
    q: float = 0.7  # of the generalised cross-entropy, in (0, 1]
    decay: float = 0.7  # what of a smoothed loss stays from one epoch to the next; 0: losses as they are

    def __post_init__(self) -> None:
        require(0 < self.q <= 1, f"q must lie in (0, 1] but got {self.q}.")
        require(0 <= self.decay < 1, f"decay must lie in [0, 1) but got {self.decay}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        biased = new_student(None, model, train, session.seed)
        pair, easy = Pair(model, biased), generalised_cross_entropy(self.q)
        difficulty = RelativeDifficulty(train.y, self.decay, session.device)

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            seen = pair.both(model, batch.x)
            losses = torch.stack([cross_entropy(seen.helper, batch), cross_entropy(seen.kept, batch)])
            weight = difficulty.of_batch(losses, batch)
            loss = weight * losses[1] + easy(seen.helper, batch)
            return Minimised(loss, seen.kept, for_carry={"losses": losses})

        train_model(
            pair, train, self.training, stage="training", session=session, objective=objective, carry=[difficulty]
        )
        mined = Mined(difficulty.conflicting(), None, train.y)
        return Fit(model, {"biased": biased}, Baseline("biased", "student"), mining=mined)
