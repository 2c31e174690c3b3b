"""Training in mixed precision (--set precision=bf16) over training in full precision.

    python benchmarks/precision.py [--repeats 5]

Each network takes turns with its copy in the other precision, through the shared loop; medians. There is no bound: a
processor that does not know bfloat16 is slower with it (`unspur doctor` says which one this is).
"""

from __future__ import annotations

import argparse
import copy
from functools import partial

import torch
from lightning_fabric import Fabric
from side_by_side import compare

from unspur.data.base import Dataset, Split
from unspur.models.catalog import build_model
from unspur.runs.config import configure
from unspur.runs.experiment import fabric_for
from unspur.train.loop import train
from unspur.train.recipe import SGD
from unspur.train.session import Session

STEPS = 4
CASES = [("fcn", 100, 28, {}), ("cnn3", 256, 28, {}), ("vgg11", 100, 32, {"width": 0.25}), ("resnet18", 128, 32, {})]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print(f"Seconds of {STEPS} training steps, full precision and bf16, {torch.get_num_threads()} threads:")
    for name, batch, side, options in CASES:
        x = torch.rand(STEPS * batch, 3, side, side, generator=torch.Generator().manual_seed(0))
        split = Split(x, torch.arange(len(x)) % 10)
        model = build_model(name, Dataset("random", split, split, {}, tuple("0123456789")), **options)
        recipe = SGD(lr=1e-3, epochs=1, batch_size=batch)
        ways = {}
        for precision in ("full", "bf16"):
            fabric = fabric_for(configure("erm", "parity", settings=[f"precision={precision}"]))
            own = copy.deepcopy(model)
            ways[precision] = partial(_epoch, own, split, recipe, fabric)
        seconds = compare(ways, arguments.repeats)
        times = f"{seconds['full']:.3f} s, {seconds['bf16']:.3f} s"
        print(f"  {name} {batch}x3x{side}x{side}: {times}, {seconds['full'] / seconds['bf16']:.2f} x as fast in bf16")


def _epoch(model: torch.nn.Module, split: Split, recipe: SGD, fabric: Fabric) -> None:
    train(model, split, recipe, stage="benchmark", session=Session(fabric))


if __name__ == "__main__":
    main()
