"""The features of a frozen efficientnet_lite0 at 128 pixels, in every way that this processor has.

    python benchmarks/features.py [--repeats 5] [--images 50] [--compile]

The ways take turns; medians. Beside the ratio to the network as it is stands the largest difference between features,
over the largest feature: more than 1e-3 is out of the question. --compile adds torch.compile, which takes minutes.
onnxruntime is measured where it is installed (pip install 'unspur[export]'). Exits with 1 if the way that
unspur.models.inference takes is off, or takes more than three quarters of the time.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable

import torch
from side_by_side import compare, verdict
from torch import Tensor, nn

from unspur.data.base import Dataset, Split
from unspur.models.base import head_of, with_features
from unspur.models.catalog import build_model
from unspur.models.inference import TOLERANCE, WORTH_CONVERTING, fastest, fused

LAST = torch.channels_last
Features = Callable[[Tensor], Tensor]


def features(net: nn.Module, layout: torch.memory_format = torch.contiguous_format) -> Features:
    net = copy.deepcopy(net).eval().to(memory_format=layout)  # type: ignore[call-overload]

    def call(x: Tensor) -> Tensor:
        with torch.no_grad():
            return with_features(net, x)[0]

    return call


def bf16(net: nn.Module) -> Features:
    plain = features(net, LAST)

    def call(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return plain(x).float()

    return call


def body(net: nn.Module) -> nn.Module:
    """``net`` without its head, in channels-last layout."""
    net = copy.deepcopy(net).eval().to(memory_format=LAST)  # type: ignore[call-overload]
    head = head_of(net)
    net.set_submodule(next(name for name, module in net.named_modules() if module is head), nn.Identity())
    return net


def compiled(net: nn.Module, x: Tensor) -> Features:
    made, begin = torch.compile(body(net)), time.perf_counter()

    def call(x: Tensor) -> Tensor:
        with torch.no_grad():
            return made(x)  # type: ignore[no-any-return]

    call(x)
    print(f"  (torch.compile took {time.perf_counter() - begin:.0f} s)")
    return call


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    x = torch.rand(arguments.images, 3, 128, 128, generator=torch.Generator().manual_seed(0))
    split = Split(x, torch.zeros(len(x), dtype=torch.long))
    model = build_model("efficientnet_lite0", Dataset("random", split, split, {}, ("a", "b"))).eval()
    print(f"Features of {len(x)} images, {torch.get_num_threads()} threads, over the network as it is:")
    one = fused(model, x[:2])
    ways: dict[str, Features] = {
        "as it is": features(model),
        "channels last": features(model, LAST),
        "fused": features(one),
        "fused, channels last": features(one, LAST),
        "bf16, channels last": bf16(model),
    }
    if arguments.compile:
        ways["torch.compile, channels last"] = compiled(model, x)
    taken = fastest(model, x[:2], WORTH_CONVERTING)
    ways[f"what is taken: {taken.name}"] = taken.features
    expected = ways["as it is"](x)
    off = {name: float((way(x) - expected).abs().max() / expected.abs().max()) for name, way in ways.items()}
    seconds = compare({name: lambda way=way: way(x) for name, way in ways.items()}, arguments.repeats)  # type: ignore[misc]
    base = seconds["as it is"]
    for name in ways:
        rate = f"{len(x) / seconds[name]:.0f} images a second"
        print(f"  {name}: {seconds[name] / base:.2f}, {rate}, off by {off[name]:.1e}")
    ratio = seconds[f"what is taken: {taken.name}"] / base
    holds = verdict("time over that of the network as it is", ratio, at_most=0.75)
    return 0 if holds and off[f"what is taken: {taken.name}"] <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
