"""Which samples some models get right and others do not."""

from __future__ import annotations

from torch import Tensor

MOST, FEW = 0.75, 0.25  # "Large Learning Rates ...", E.1


def won_by(these: Tensor, others: Tensor, most: float = MOST, few: float = FEW) -> Tensor:
    """The samples that more than ``most`` of these models get right and fewer than ``few`` of the others (Figure 8).

    Both are (models, samples), true where a model is right.

    >>> import torch
    >>> high = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 0, 1]]).bool()
    >>> won_by(high, torch.tensor([[0, 0, 0], [0, 0, 0]]).bool())  # 3 of 4 are not more than three quarters
    tensor([0])
    """
    share, other = these.double().mean(0), others.double().mean(0)
    return ((share > most) & (other < few)).nonzero().flatten()
