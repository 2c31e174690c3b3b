"""A shortcut in a few numbers, and a network that takes it: for tests that fit whole methods in a moment."""

import torch
from torch import nn

from unspur.core.seeds import seeded
from unspur.data.base import Split
from unspur.train.loop import measure
from unspur.train.recipe import SGD
from unspur.train.session import Session

PLAIN = SGD(lr=0.02, epochs=3, batch_size=64)  # long enough for plain training to take the shortcut
SLOW = SGD(lr=0.05, epochs=10, batch_size=500)  # the same for ``environments``


def shortcut(n=600, conflicting=30, seed=0):
    """Two classes; a strong number that tells them but for the first ``conflicting`` samples, and weak ones that do."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=generator)
    told = y.clone()
    told[:conflicting] = 1 - told[:conflicting]
    weak = torch.randn(n, 6, generator=generator) + 0.5 * (2 * y - 1).unsqueeze(1)
    strong = 4.0 * (2 * told - 1).unsqueeze(1) + 0.1 * torch.randn(n, 1, generator=generator)
    return Split(torch.cat([strong, weak], 1), y, {"told": told})


def environments(n=4000, agree=(0.9, 0.7), seed=0):
    """Two domains, two numbers: one tells 75 % of the classes in both, the other 90 % and 70 %, or ``agree``."""
    generator = torch.Generator().manual_seed(seed)
    domain, core = torch.arange(n) % 2, torch.randint(0, 2, (n,), generator=generator)
    y = torch.where(torch.rand(n, generator=generator) < 0.25, 1 - core, core)
    told = torch.where(torch.rand(n, generator=generator) < torch.tensor(agree)[domain], y, 1 - y)
    x = 2.0 * torch.stack([told, core], 1) - 1 + 0.1 * torch.randn(n, 2, generator=generator)
    return Split(x, y, {"domain": domain, "told": told})


def small():
    """A network for ``environments``."""
    with seeded(0, "network"):
        return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))


def reversed_rule(fit):
    """The accuracy of a result where the number that differs between domains tells 10 % of the classes."""
    return measure(fit.model, environments(2000, (0.1, 0.1), seed=9), Session())[0]


def network():
    with seeded(0, "network"):
        return nn.Sequential(nn.Linear(7, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))


def misled(fit):
    """The accuracy of a result where the strong number always misleads."""
    return measure(fit.model, shortcut(2000, conflicting=2000, seed=2), Session())[0]
