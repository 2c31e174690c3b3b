"""Outputs besides the classes that say when to abstain: a linear unit on the features that the last layer reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from unspur.core.seeds import seeded
from unspur.models.base import head_of, with_features

Kind = Literal["selection", "reservation"]  # a unit that says "answer", or one more class that says "abstain"

SELECTOR = "selector"  # the artifact in which a run keeps its selector


class Selector(NamedTuple):
    """A linear unit on a network's features; together with the logits it says how sure the network is."""

    kind: Kind
    weight: Tensor  # of each feature, and a last one, the bias

    def confidence(self, features: Tensor, logits: Tensor) -> Tensor:
        """From 0 to 1: the unit's sigmoid, or the share of the classes in the softmax over classes and unit.

        >>> one = torch.tensor([1.0, 0.0])
        >>> Selector("selection", one).confidence(torch.zeros(1, 1), torch.zeros(1, 3))
        tensor([0.5000], dtype=torch.float64)
        >>> Selector("reservation", one).confidence(torch.zeros(1, 1), torch.zeros(1, 3))
        tensor([0.7500], dtype=torch.float64)
        """
        weight = self.weight.double()
        unit = features.double() @ weight[:-1] + weight[-1]
        if self.kind == "selection":
            return unit.sigmoid()
        return torch.cat([logits.double(), unit[:, None]], 1).softmax(1)[:, :-1].sum(1)


class WithUnits(nn.Module):
    """A network, and linear units on the features that its last layer reads; ``normal``: normalised over the batch.

    A sigmoid on features as they are may be certain of all samples after a few steps, and then has no slope left.
    """

    def __init__(self, network: nn.Module, units: int, seed: int, *, normal: bool = False) -> None:
        super().__init__()
        head = head_of(network)
        self.norm = nn.BatchNorm1d(head.in_features, affine=False) if normal else None
        with seeded(seed, "units"):
            self.units = nn.Linear(head.in_features, units)
        self.network = network

    @property
    def networks(self) -> tuple[Callable[[Tensor], object], ...]:
        """What a pass that measures batch norm calls, so that it reaches the units' own."""
        return (partial(self.outputs, self),)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)
        return logits

    def outputs(self, model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and units from one pass of ``model``, which is this module or a wrapper around it."""
        features, logits = with_features(model, x, head_of(self.network))
        features = features.float()
        return logits.float(), self.units(features if self.norm is None else self.norm(features))

    def selector(self, kind: Kind) -> Selector:
        """The first unit, which the normalisation is a part of: both are linear."""
        weight, bias = self.units.weight[0].detach().double(), self.units.bias[:1].detach().double()
        if self.norm is not None:
            mean, variance = self.norm.running_mean, self.norm.running_var
            assert mean is not None and variance is not None  # it tracks them
            weight = weight / (variance.double() + self.norm.eps).sqrt()
            bias = bias - weight @ mean.double()
        return Selector(kind, torch.cat([weight, bias]).cpu())


def selective_loss(losses: Tensor, selected: Tensor, coverage: float, lam: float) -> Tensor:
    """The selected samples' mean loss, plus lambda max(0, c - mean selection)^2 (SelectiveNet, Eq. 2).

    >>> half = torch.tensor([1.0, 0.0])
    >>> selective_loss(torch.tensor([3.0, 9.0]), half, 0.75, 32.0)  # 3 + 32 x 0.25^2
    tensor(5.)
    """
    share = selected.mean()
    return (losses * selected).mean() / share + lam * (coverage - share).clamp(min=0).square()


def gamblers_loss(logits: Tensor, reserved: Tensor, y: Tensor, payoff: float) -> Tensor:
    """-log(p_y + p_abstain / o) of each sample, the probabilities being over classes and abstaining (Eq. 6)."""
    everything = torch.cat([logits, reserved[:, None]], 1)
    own = logits.gather(1, y[:, None]).squeeze(1)
    won = torch.logaddexp(own, reserved - torch.tensor(payoff, device=y.device).log())
    return everything.logsumexp(1) - won
