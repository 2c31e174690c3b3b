"""Fine-tuning a pretrained network with and without keeping freed memory (core/memory.py), in processes of their own.

python benchmarks/freed_memory.py [--pixels 128]

Steps of EfficientNet-Lite0 with frozen batch norm, batches of 32, one thread; time is what the processor worked.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import torch
from side_by_side import verdict
from torch.nn import functional

from unspur.core.memory import keep_freed_memory
from unspur.data.base import Dataset, Split
from unspur.models.base import memory_format
from unspur.models.catalog import build_model

BATCH, STEPS, ROUNDS = 32, 5, 3


def step_seconds(pixels: int) -> float:
    """The mean time of a step, two to warm up left out."""
    torch.set_num_threads(1)
    blank = Split(torch.zeros(0, 3, pixels, pixels, dtype=torch.uint8), torch.zeros(0, dtype=torch.long))
    model = build_model("efficientnet_lite0", Dataset("blank", blank, blank, {}, ("a", "b")), freeze="norm").train()
    model.to(memory_format=memory_format(model))  # type: ignore[call-overload]
    x, y = torch.rand(BATCH, 3, pixels, pixels).contiguous(memory_format=torch.channels_last), torch.arange(BATCH) % 2
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    ends = []
    for _ in range(2 + STEPS):
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        ends.append(time.process_time())
    return (ends[-1] - ends[1]) / STEPS


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pixels", type=int, default=128)
    parser.add_argument("--one", choices=("kept", "given back"), help="print the seconds of a step, and nothing else")
    given = parser.parse_args()
    if given.one:
        if given.one == "kept":
            keep_freed_memory()
        print(step_seconds(given.pixels))
        return True
    seconds: dict[str, list[float]] = {"kept": [], "given back": []}
    for _ in range(ROUNDS):
        for name, own in seconds.items():
            command = [sys.executable, __file__, "--pixels", str(given.pixels), "--one", name]
            own.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    kept, given_back = (statistics.median(own) for own in seconds.values())
    print(f"{BATCH} images of {given.pixels} pixels: {1e3 * given_back:.0f} ms a step, memory kept {1e3 * kept:.0f} ms")
    return verdict("kept over given back", kept / given_back, at_most=1.0)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
