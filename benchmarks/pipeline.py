"""The input pipeline's share of a training step, images in memory. Bound: at most 5 %.

python benchmarks/pipeline.py
"""

from __future__ import annotations

import sys

import torch
from side_by_side import compare, verdict

from unspur.data.catalog import load
from unspur.models.base import memory_format
from unspur.models.catalog import build_model
from unspur.train.orders import epoch_batches

STEPS = 30


def main() -> bool:
    data = load("biased_mnist", base="mini")
    model = build_model("small_cnn", data)
    model.to(memory_format=memory_format(model))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = epoch_batches(len(data.train), 128, torch.Generator().manual_seed(0))[:STEPS]

    def pipeline() -> None:
        for index in batches:
            data.train.batch(index)

    def steps() -> None:
        for index in batches:
            batch = data.train.batch(index)
            loss = torch.nn.functional.cross_entropy(model(batch.x), batch.y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    seconds = compare({"pipeline alone": pipeline, "whole training steps": steps})
    share = seconds["pipeline alone"] / seconds["whole training steps"]
    return verdict("input pipeline / training step (small_cnn, batch 128)", share, at_most=0.05)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
