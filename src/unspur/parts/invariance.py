"""The invariance penalty of IRM (arXiv:1907.02893), and environments that raise it most (EIIL, arXiv:2010.07249)."""

from __future__ import annotations

import torch
from torch import Tensor

from unspur.core.progress import Done
from unspur.parts.domains import Seen
from unspur.parts.group_losses import group_means


def slopes(logits: Tensor, y: Tensor) -> Tensor:
    """How each sample's cross-entropy changes with a scale of the logits: <softmax(z) - y, z>.

    >>> slopes(torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1]))  # 2 (0.8808 - 1), and 0
    tensor([-0.2384,  0.0000])
    """
    over = logits - logits.gather(1, y[:, None])  # the same, without the difference of two large numbers
    return (logits.softmax(1) * over).sum(1)


def invariance(seen: Seen) -> Tensor:
    """The mean over domains of (d/dw risk of w z at w = 1) squared."""
    return group_means(slopes(seen.logits, seen.y), seen.domain, len(seen.risks)).square().mean()


def soft_penalty(share: Tensor, slope: Tensor) -> Tensor:
    """The penalty of two environments; each sample belongs to the first one with its ``share`` (EIIL, Eq. 4).

    An environment's risk is divided by the number of all samples, not by the environment's own size: otherwise a single
    sample would be the best environment.
    """
    return (share * slope).mean().square() + ((1 - share) * slope).mean().square()


def environments(slope: Tensor, start: Tensor, lr: float, steps: int, progress: Done) -> Tensor:
    """Which samples belong to the first of the two environments that raise the penalty most (EIIL, Algorithm 1).

    Slopes are scaled to a mean square of 1, in double precision. Adam's steps do not depend on that but for its
    epsilon, which exceeds the gradients where the model is confident: the split would stay near its random start.
    """
    slope = slope.double()
    slope = slope / slope.square().mean().sqrt().clamp(min=torch.finfo(slope.dtype).tiny)
    assigned = start.to(slope).clone().requires_grad_()
    optimiser = torch.optim.Adam([assigned], lr=lr)
    for step in range(steps):
        optimiser.zero_grad()
        torch.autograd.backward(-soft_penalty(assigned.sigmoid(), slope), inputs=[assigned])
        optimiser.step()
        progress((step + 1) / steps)
    return assigned.detach() > 0
