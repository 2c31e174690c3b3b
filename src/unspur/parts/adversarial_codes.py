"""Codes of a network's features that reconstruct them, look like a prior to an adversary, and predict the classes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.data.base import Batch
from unspur.models.base import hooked, with_features
from unspur.parts.feature_distances import mmd
from unspur.parts.group_losses import group_means
from unspur.train.loop import Objective
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised

SCALE = 0.5**0.5  # of the Laplace prior: a variance of 1


class _Reversed(torch.autograd.Function):
    """The identity; the gradient that comes back changes its sign."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(context: Any, *slopes: Tensor) -> Tensor:
        return -slopes[0]


def reverse(x: Tensor) -> Tensor:
    """``x`` unchanged; its gradient is reversed."""
    turned: Tensor = _Reversed.apply(x)  # type: ignore[no-untyped-call]
    return turned


class Coded(nn.Module):
    """A network whose features a linear encoder turns into codes, and what reads the codes."""

    def __init__(self, network: nn.Module, head: nn.Linear, codes: int) -> None:
        super().__init__()
        self.network = network
        self.encoder = nn.Linear(head.in_features, codes)
        self.decoder = nn.Linear(codes, head.in_features)
        self.classes = nn.Linear(codes, head.out_features)
        self.adversary = nn.Sequential(nn.Linear(codes, codes), nn.ReLU(), nn.Linear(codes, 1))
        self._head = (head,)  # in a tuple, so that the module does not register it twice

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classes(self.encoder(with_features(self.network, x)[0]))
        return logits

    @torch.no_grad()
    def give_head(self) -> None:
        """Merge encoder and classifier, which together are one linear map, into the network's own last layer."""
        (head,) = self._head
        head.weight.copy_(self.classes.weight @ self.encoder.weight)
        head.bias.copy_(self.classes.weight @ self.encoder.bias + self.classes.bias)


def code_loss(coded: Coded, domain: Tensor, reconstruction: float, gamma: float, adversary: float) -> Objective:
    """The mean of the domains' risks, plus three weighted terms."""
    count = int(domain.max()) + 1

    def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
        own = domain.to(batch.index.device)[batch.index]
        caught: list[tuple[Tensor, Tensor]] = []  # from the one pass, which the fabric may run in mixed precision
        with hooked([coded.encoder], lambda module, inputs, output: caught.append((inputs[0], output))):
            logits = model(batch.x)
        features, codes = (value.float() for value in caught[-1])
        risk = group_means(cross_entropy(logits.float(), batch), own, count).mean()
        lost = functional.mse_loss(coded.decoder(codes), features)
        apart, told = mmd(codes, own), _told(coded.adversary, codes)
        logged = {"risk": risk, "lost": lost, "apart": apart, "told": told}
        return Minimised(risk + reconstruction * lost + gamma * apart + adversary * told, logits, logged)

    return objective


def _told(adversary: nn.Module, codes: Tensor) -> Tensor:
    """How badly the adversary tells codes from draws of the prior: the adversary lowers it, the encoder raises it."""
    prior = torch.distributions.Laplace(0.0, SCALE).sample(codes.shape).to(codes)
    answers = adversary(torch.cat([prior, reverse(codes)])).squeeze(1).float()
    truth = torch.cat([torch.ones(len(prior)), torch.zeros(len(codes))]).to(answers)
    return functional.binary_cross_entropy_with_logits(answers, truth)
