"""A step of DCWP's mask training over a step of ERM. Bounds: 1.25 on cnn3 (batch 256), 1.6 on ResNet-18 (32x32, 128).

python benchmarks/dcwp.py

Both are the library's own loops with Adam. The mask training has everything on: gates on all weights, draws by share,
the alignment loss and the sparsity term. The images are noise: the time does not depend on what they show.
"""

from __future__ import annotations

import torch
from side_by_side import compare, verdict

from unspur.data.base import Dataset, Split
from unspur.models.catalog import build_model
from unspur.parts.debias import Debias, MaskTraining, learn_masks
from unspur.train.loop import train
from unspur.train.recipe import Adam
from unspur.train.session import Session

STEPS = 4


def noise(size: int, count: int) -> Dataset:
    """Random images in ten classes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=generator)
    split = Split(x, torch.randint(0, 10, (count,), generator=generator))
    return Dataset("noise", split, split, {}, tuple("0123456789"))


def ratio(arch: str, size: int, batch_size: int) -> float:
    """Seconds of a few steps of mask training over those of as many steps of ERM."""
    data = noise(size, STEPS * batch_size)
    model, session = build_model(arch, data), Session()
    mined = torch.arange(len(data.train)) % 50 == 0
    recipe = Adam(lr=1e-3, epochs=1, batch_size=batch_size)
    masks = MaskTraining(steps=STEPS, batch_size=batch_size)
    seconds = compare(
        {
            "erm": lambda: train(model, data.train, recipe, stage="erm", session=session),
            "masks": lambda: learn_masks(
                model, data.train, Debias(mined, "sample", 0.07), masks, lambda pruned: {}, session
            ),
        },
        repeats=7,
    )
    print(f"{arch}: ERM {seconds['erm'] / STEPS * 1e3:.0f} ms, masks {seconds['masks'] / STEPS * 1e3:.0f} ms a step")
    return seconds["masks"] / seconds["erm"]


def main() -> None:
    verdict("mask training / ERM (cnn3, batch 256)", ratio("cnn3", 28, 256), at_most=1.25)
    verdict("mask training / ERM (resnet18, 32x32, batch 128)", ratio("resnet18", 32, 128), at_most=1.6)


if __name__ == "__main__":
    main()
