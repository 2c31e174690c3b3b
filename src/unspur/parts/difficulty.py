"""How hard each sample is for a biased network, relative to how hard it is for another (LfF, section 3.2)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from unspur.data.base import Batch
from unspur.train.moments import Carry, Moment

BIASED, OTHER = 0, 1  # rows of all that is kept


class RelativeDifficulty(Carry):
    """Two networks' losses of every sample, smoothed over epochs, and the weights L_b / (L_b + L_d) that they give.

    A sample's first loss counts in full, a later one by 1 - decay, as in the authors' code. For each network, losses
    are scaled so that each class's largest smoothed loss is 1: a hard class must not count as biased.
    """

    saved: ClassVar[tuple[str, ...]] = ("losses", "seen")

    def __init__(self, y: Tensor, decay: float, device: torch.device) -> None:
        """``decay`` is the share of a smoothed loss that stays when the sample is seen again."""
        self.y, self.decay = y.to(device), decay
        self.losses = torch.zeros(2, len(y), device=device)
        self.seen = torch.zeros(len(y), dtype=torch.bool, device=device)

    def smoothed(self, new: Tensor, batch: Batch) -> Tensor:
        """All smoothed losses, updated with the sample losses ``new`` (2, batch)."""
        losses = self.losses.clone()
        decay = self.decay * self.seen[batch.index]  # 0 where there is no earlier loss to keep
        losses[:, batch.index] = decay * losses[:, batch.index] + (1 - decay) * new.detach()
        return losses

    def weights(self, losses: Tensor) -> Tensor:
        """The weight of every sample, from all smoothed losses; 1/2 where both losses are 0."""
        label = self.y.expand(2, -1)
        largest = losses.new_zeros(2, int(self.y.max()) + 1).scatter_reduce(1, label, losses, "amax")
        scaled = losses / largest.gather(1, label).clamp(min=torch.finfo(losses.dtype).tiny)
        return (scaled[BIASED] / scaled.sum(0)).nan_to_num(0.5)

    def of_batch(self, new: Tensor, batch: Batch) -> Tensor:
        """The weights of a batch's samples, whose losses are ``new``."""
        return self.weights(self.smoothed(new, batch))[batch.index]

    def conflicting(self) -> Tensor:
        """Which samples are harder for the biased network."""
        return (self.weights(self.losses) > 0.5).cpu()

    def see(self, moment: Moment) -> None:
        self.losses = self.smoothed(moment.found.for_carry["losses"], moment.batch)
        self.seen = self.seen.index_fill(0, moment.batch.index, True)

    def load(self, state: dict[str, Any]) -> None:
        super().load({name: value.to(self.y.device) for name, value in state.items()})  # a file's are on the CPU
