"""Training steps with channels last, the layout that networks here are given, over steps in torch's plain layout.

    python benchmarks/channels_last.py [--repeats 5]

Each network takes turns with its copy in the other layout; medians. Exits with 1 if a network that
unspur.models.base.memory_format puts in channels-last layout is slower there by more than a tenth.
"""

from __future__ import annotations

import argparse
import copy
import sys

import torch
from side_by_side import compare, verdict
from torch import nn

from unspur.data.base import Dataset, Split
from unspur.models.base import memory_format
from unspur.models.catalog import build_model

CASES = [  # architecture, batch, side of the image
    ("small_cnn", 128, 28),
    ("cnn3", 256, 28),
    ("vgg11", 100, 32),
    ("resnet32", 128, 32),
    ("resnet18", 128, 32),
    ("resnet18", 8, 128),
    ("mobilenet_v2", 8, 128),
]


class Step:
    """One step of SGD on a batch that never changes."""

    def __init__(self, model: nn.Module, x: torch.Tensor, layout: torch.memory_format) -> None:
        self.model = copy.deepcopy(model).to(memory_format=layout)  # type: ignore[call-overload]
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.x, self.y = x, torch.arange(len(x)) % 10

    def __call__(self) -> None:
        loss = nn.functional.cross_entropy(self.model(self.x), self.y)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    holds = []
    print(f"Seconds of a training step, channels last over plain layout, {torch.get_num_threads()} threads:")
    for name, batch, side in CASES:
        x = torch.rand(batch, 3, side, side, generator=torch.Generator().manual_seed(0))
        split = Split(x, torch.zeros(batch, dtype=torch.long))
        model = build_model(name, Dataset("random", split, split, {}, tuple("0123456789")))
        assert memory_format(model) is torch.channels_last
        plain, last = Step(model, x, torch.contiguous_format), Step(model, x, torch.channels_last)
        seconds = compare({"plain": plain, "last": last}, arguments.repeats)
        holds.append(verdict(f"  {name} {batch}x3x{side}x{side}", seconds["last"] / seconds["plain"], at_most=1.1))
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
