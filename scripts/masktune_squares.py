"""MaskTune on four squares that the paper does not have, with other places and sizes of its masks.

    python scripts/masktune_squares.py [--seed 5] [--only NAME]

Embedded digits, ten epochs of plain training for each square; each rule then masks and fine-tunes the same network. A
line for each square and rule goes to results/masktune-squares.jsonl; those that it has are not repeated.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.planted_mnist import BiasedMNIST
from unspur.data.shortcuts.drawn import Square
from unspur.evaluation.scores import evaluate
from unspur.methods.erm import ERM
from unspur.methods.masktune import MaskTune
from unspur.models.small_cnn import SmallCNN
from unspur.train.recipe import SGD
from unspur.version import commit

LOG = Path("results/masktune-squares.jsonl")
SQUARES = {
    "red, 6x6, inset": Square(row=3, column=3, size=6, colour=(255, 0, 0)),
    "blue, top left": Square(),
    "green, bottom right": Square(row=-4, column=-4, colour=(0, 255, 0)),
    "white, 3x3, top right": Square(column=-3, size=3, colour=(255, 255, 255)),
}
PLAIN = SGD(lr=0.01, batch_size=128, epochs=10, weight_decay=1e-4)
TUNED = MaskTune(erm=replace(PLAIN, epochs=0), finetune_lr=PLAIN.lr)  # goes on from the network that it is given
RULES: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "place=centred": {"place": "centred"},
    "place=centred grow=1": {"place": "centred", "grow": 1},
    "grow=2": {"grow": 2},
}


class Planted(BiasedMNIST):
    """Biased MNIST with another square."""

    square = Square()

    @property
    def shortcuts(self) -> dict[str, Square]:
        return {"square": self.square}


def scores(model: nn.Module, data: Dataset) -> dict[str, float]:
    return {name: block["accuracy"] for name, block in evaluate(model, data).items()}


def tried(rule: dict[str, Any], model: nn.Module, data: Dataset, square: Square, seed: int) -> dict[str, Any]:
    """The accuracies after masking by ``rule``, and how much of the square its masks hide."""
    fit = replace(TUNED, **rule).fit(model, data.train, seed=seed)
    assert fit.masks is not None and fit.masks.mask is not None
    keep = fit.masks.mask.keep((data.train.attributes["square"] == 1).nonzero().flatten())
    hidden = float((keep[:, square.region(data.train.sample_shape)] == 0).float().mean())
    return {"accuracy": scores(fit.model, data), "square_hidden": hidden}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--only", choices=SQUARES, help="one of the squares")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []
    done = {(line["square"], line["rule"], line["seed"]) for line in lines}
    for name, square in SQUARES.items():
        left = [rule for rule in RULES if (name, rule, arguments.seed) not in done]
        if not left or arguments.only not in (None, name):
            continue
        data = type("Own", (Planted,), {"square": square})(base="mini", seed=arguments.seed).load(DataFiles(None))
        plain = ERM(erm=PLAIN).fit(SmallCNN().build(data, seed=arguments.seed), data.train, seed=arguments.seed).model
        before = scores(plain, data)
        for rule in left:
            line = {"square": name, "rule": rule, "seed": arguments.seed, "before": before}
            line |= {**tried(RULES[rule], plain, data, square, arguments.seed), "commit": commit()}
            with LOG.open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(line, flush=True)


if __name__ == "__main__":
    main()
