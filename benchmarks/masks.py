"""Masks for a whole training set: against a plain forward pass, and against masked copies on disk.

    python benchmarks/masks.py [--repeats 7]

The embedded digits with a square (10,000 images of 28x28, less those kept for validation) through small_cnn in batches
of 256. Ours: maps, thresholds and masks of every image, as MaskTune makes them, which are then applied as batches are
drawn; one epoch of drawing them is timed too. The peer: grad-cam's XGradCAM in torch's default layout, the same
threshold on its maps, and a masked PNG of every image written, which training would read again. Exits with 1 if masks
cost more than 1.15 forward passes or the peer is less than 3 times slower.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from side_by_side import compare, verdict
from torch import Tensor, nn

from unspur.data.base import Split
from unspur.data.catalog import load
from unspur.models.base import cam_layer, memory_format
from unspur.models.catalog import build_model
from unspur.models.torchvision_compat import import_torchvision
from unspur.saliency.maps import maps_of
from unspur.saliency.threshold import MeanStd, hide

import_torchvision()  # which grad-cam imports

from pytorch_grad_cam import XGradCAM  # noqa: E402

BATCH = 256


def numbers(split: Split) -> tuple[Tensor, ...]:
    return torch.arange(len(split)).split(BATCH)


def forward(model: nn.Module, split: Split) -> None:
    with torch.inference_mode():
        for batch in split.batches(numbers(split)):
            model(batch.x)


def masked(model: nn.Module, split: Split) -> Split:
    size = tuple(split.sample_shape[-2:])
    return split.masked(hide(MeanStd(), maps_of(model, split, batch_size=BATCH), size))


def draw(split: Split) -> None:
    for _ in split.batches(numbers(split)):
        pass


def copies_on_disk(peer: XGradCAM, split: Split) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for batch in split.batches(numbers(split)):
            maps = peer(batch.x, None)
            level = maps.mean((1, 2), keepdims=True) + 2 * maps.std((1, 2), keepdims=True)
            images = (batch.x.numpy() * 255).round().astype(np.uint8) * (maps <= level)[:, None]
            for number, image in zip(batch.index.tolist(), images, strict=True):
                Image.fromarray(image.astype(np.uint8).transpose(1, 2, 0)).save(Path(folder) / f"{number}.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    data = load("biased_mnist", base="mini")
    split = data.train
    model = build_model("small_cnn", data).eval()
    plain = copy.deepcopy(model)
    model.to(memory_format=memory_format(model))
    peer = XGradCAM(plain, [cam_layer(plain, split.sample_shape)])
    hidden = masked(model, split)
    seconds = compare(
        {
            "forward pass": lambda: forward(model, split),
            "our masks": lambda: masked(model, split),
            "an epoch's batches": lambda: draw(split),
            "and masked": lambda: draw(hidden),
            "grad-cam, copies": lambda: copies_on_disk(peer, split),
        },
        repeats,
    )
    print(f"{len(split)} images of 28x28 through small_cnn, {torch.get_num_threads()} threads:")
    for name, value in seconds.items():
        print(f"  {name:18} {value:7.3f} s")
    assert hidden.mask is not None
    holds = [
        verdict("our masks / forward pass", seconds["our masks"] / seconds["forward pass"], at_most=1.15),
        verdict("copies on disk / our masks", seconds["grad-cam, copies"] / seconds["our masks"], at_least=3),
        verdict("bytes an image", hidden.mask.bytes_each, at_most=200),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
