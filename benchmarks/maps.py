"""Class-activation maps: at most 1.15 x a plain forward pass, at least 3 x faster than grad-cam, at most 200 bytes.

    python benchmarks/maps.py [--images 10000] [--repeats 5]

Random RGB images of 28x28 through small_cnn, in batches of 256: the forward pass alone, our XGradCAM maps, and
grad-cam's, which take turns batch by batch; a figure is the median batch, times the number of batches. Forward pass and
our maps have the memory layout that training here gives a model. grad-cam has torch's default, as in its own examples;
with our layout it is timed too, without a bound, so that one sees what is due to layout alone. Its maps before it
resizes them must be equal to ours. Exits with 1 if a bound does not hold.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import sys
from collections.abc import Callable

import numpy as np
import torch
from side_by_side import compare, verdict
from torch import Tensor

from unspur.data.base import Dataset, Split
from unspur.models.base import cam_layer, memory_format
from unspur.models.catalog import build_model
from unspur.models.torchvision_compat import import_torchvision
from unspur.saliency.cam import cam
from unspur.saliency.maps import maps_of

import_torchvision()  # which grad-cam imports

from pytorch_grad_cam import XGradCAM  # noqa: E402

BATCH = 256


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (arguments.images, 3, 28, 28), dtype=torch.uint8, generator=generator)
    split = Split(x, torch.zeros(len(x), dtype=torch.long))
    model = build_model("small_cnn", Dataset("random", split, split, {}, ("0", "1")))
    model.eval()
    plain = copy.deepcopy(model)
    model.to(memory_format=memory_format(model))
    layer, plain_layer = (cam_layer(each, split.sample_shape) for each in (model, plain))
    batches = [split.batch(torch.arange(i, min(i + BATCH, len(split)))).x for i in range(0, len(split), BATCH)]
    peer, same_layout = XGradCAM(plain, [plain_layer]), XGradCAM(model, [layer])

    def in_turn(function: Callable[[Tensor], object]) -> Callable[[], object]:
        supply = itertools.cycle(batches)
        return lambda: function(next(supply))

    contestants = {
        "forward pass": in_turn(torch.inference_mode()(model)),
        "our maps": in_turn(lambda batch: cam(model, batch, layer=layer)),
        "grad-cam's maps": in_turn(lambda batch: peer(batch, None)),
        "  in our layout": in_turn(lambda batch: same_layout(batch, None)),
    }
    median = compare(contestants, arguments.repeats * len(batches))
    seconds = {name: value * len(batches) for name, value in median.items()}
    print(f"{len(split)} images of 28x28 through small_cnn, {torch.get_num_threads()} threads:")
    for name, value in seconds.items():
        print(f"  {name:16} {value:7.3f} s")
    stored = maps_of(model, split)
    holds = [
        verdict("our maps / forward pass", seconds["our maps"] / seconds["forward pass"], at_most=1.15),
        verdict("grad-cam's maps / our maps", seconds["grad-cam's maps"] / seconds["our maps"], at_least=3),
        verdict("bytes an image", stored.nbytes / len(stored), at_most=200),
        verdict("largest difference from grad-cam, in 1e-4", _difference(model, layer, peer, batches[0]), at_most=1),
    ]
    return 0 if all(holds) else 1


def _difference(model: torch.nn.Module, layer: torch.nn.Module, peer: XGradCAM, x: Tensor) -> float:
    """How far our maps are from grad-cam's before it scales them, in units of 1e-4."""
    peer(x, None)
    kept = peer.activations_and_grads
    theirs = peer.get_cam_image(x, layer, None, kept.activations[0].numpy(), kept.gradients[0].numpy())
    return float(np.abs(cam(model, x, layer=layer).numpy() - np.maximum(theirs, 0)).max() / 1e-4)


if __name__ == "__main__":
    sys.exit(main())
