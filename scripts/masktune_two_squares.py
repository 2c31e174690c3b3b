"""Two squares planted on the same images: the other reading of MaskTune's appendix A.1.

    python scripts/masktune_two_squares.py [--seed 0]

`biased_mnist` with squares=2 draws the two squares independently of each other. Here the red one is on exactly the
images that have the blue one, so that 1 % of each class conflicts with both at once. ERM and three accumulating rounds
of MaskTune, as in `unspur reproduce masktune/table5`; needs the real MNIST. Writes results/masktune-two-squares.json.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from unspur.core.files import write_json
from unspur.data.base import Split
from unspur.data.catalog import load
from unspur.data.shortcuts.drawn import Square
from unspur.evaluation.scores import evaluate
from unspur.methods.masktune import MaskTune
from unspur.models.catalog import build_model
from unspur.train.recipe import SGD
from unspur.version import commit


def with_red(split: Split) -> Split:
    """The same images, with a red square at the top right of those that have the blue one."""
    x = split.x[torch.arange(len(split))]
    red = Square(column=-4, colour=(255, 0, 0)).apply(x, split.attributes["square"], torch.Generator())
    return replace(split, x=red)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    blue = load("biased_mnist")
    data = replace(blue, train=with_red(blue.train), tests={name: with_red(test) for name, test in blue.tests.items()})
    method = MaskTune(erm=SGD(lr=0.01, epochs=10, weight_decay=1e-4), iterations=3)
    fit = method.fit(build_model("small_cnn", data, seed=seed), data.train, seed=seed)
    stages = {**fit.stages, "iteration-3": fit.model}
    accuracy = {
        stage: {test: scores["accuracy"] for test, scores in evaluate(model, data).items()}
        for stage, model in stages.items()
    }
    found = {"seed": seed, "training images": len(data.train), "epochs": 10, "commit": commit(), "accuracy": accuracy}
    write_json(Path("results/masktune-two-squares.json"), found)
    print(found)


if __name__ == "__main__":
    main()
