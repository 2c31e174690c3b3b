"""A step of every method over a step of plain training, and over its own forward and backward passes. Bound: 1.2.

python benchmarks/method_steps.py

All are the library's own trainings with SGD, one thread, on noise in ten classes and ten domains (cnn3, 28x28, batch
128). Time is what the processor worked, so that other work on the machine does not count. A forward pass without
gradients and a whole step of plain training are measured in the same rounds; what lies between is a backward pass.
`ule` and `dcwp` have benchmarks of their own. Of methods with several trainings the one is measured that does more
than plain training: the twins of `xrm`, the attribute's networks of `ssa`. The second network of `rebias` is of another
size: a step of its own counts. Left out are `masktune`, `dfr`, `dispel`, `afr` and `ee`, which train plainly before
what they do to the last layer or the images, `cim`, whose mask and comparison are no passes of the network, and what is
done once between two trainings, such as the split of `eiil`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import statistics
import sys
import time
from collections.abc import Callable

import torch
from side_by_side import verdict
from torch import nn

from unspur.data.base import Dataset, Split
from unspur.methods.base import Method
from unspur.methods.catalog import METHODS
from unspur.methods.rebias import ReBias
from unspur.models.catalog import build_model
from unspur.train.recipe import SGD, Adam
from unspur.train.session import Session

BATCH, STEPS, ROUNDS = 128, 10, 5
ONCE = SGD(lr=1e-3, epochs=1, batch_size=BATCH)

# Forward and backward passes of a whole batch in a step. w2d: one look at all samples; then, of a third of them, two
# passes forward, two back, and one from the label's logit back to the map, next to nothing.
TWICE = (2.0, 2.0)
PASSES = {"asam": TWICE, "disent": TWICE, "divdis": TWICE, "lff": TWICE, "w2d": (1 + 2 / 3, 2 / 3), "xrm": TWICE}
STAGES = {"erm": "erm", "ssa": "fold", "xrm": "twins"}  # what is measured, by how its stages are called
ELSEWHERE = ("cim", "ee", "ule")
COMPARED = tuple(
    name
    for name, method in METHODS.items()
    if any(field.name == "training" for field in dataclasses.fields(method)) and name not in ELSEWHERE
)


def noise() -> Dataset:
    """Random images, labels and domains, as many as the steps take."""
    generator = torch.Generator().manual_seed(0)
    n = STEPS * BATCH
    x = torch.randint(0, 256, (n, 3, 28, 28), dtype=torch.uint8, generator=generator)
    split = Split(x, torch.arange(n) % 10, {"domain": torch.randint(0, 10, (n,), generator=generator)})
    return Dataset("noise", split, split, {}, tuple("0123456789"))


def made(name: str) -> Method:
    """The method with as many steps as all others."""
    fields = {field.name: field.default for field in dataclasses.fields(METHODS[name])}
    trainings = {key: ONCE for key, value in fields.items() if isinstance(value, SGD | Adam)}
    more = {"anneal": 1} if name in ("irm", "vrex") else {}
    return METHODS[name](**trainings, **more)  # type: ignore[arg-type]


def step_seconds(method: Method, data: Dataset, network: Callable[[], nn.Module] | None = None) -> float:
    """The median time from one step's end to the next one's."""
    ends: list[tuple[str, float]] = []
    session = Session(progress=lambda stage, done: ends.append((stage, time.process_time())))
    model = network() if network else build_model("cnn3", data)
    method.fit(model, data.train, val=data.val, session=session)
    stage = STAGES.get(method.name, "training")
    pairs = [(a, b) for a, b in itertools.pairwise(ends) if a[0] == b[0] and a[0].startswith(stage)]
    return statistics.median(b[1] - a[1] for a, b in pairs if "batch norm" not in a[0])


def patches(data: Dataset) -> nn.Module:
    """The second network of `rebias`."""
    return ReBias().stage_model("patches", build_model("cnn3", data), data.train, 0)


def forward_seconds(data: Dataset) -> float:
    """The median time of a pass without gradients in training mode."""
    model, times = build_model("cnn3", data).to(memory_format=torch.channels_last).train(), []
    for index in torch.arange(len(data.train)).split(BATCH):
        begin = time.process_time()
        with torch.no_grad():
            model(data.train.batch(index).x)
        times.append(time.process_time() - begin)
    return statistics.median(times)


def main() -> bool:
    torch.set_num_threads(1)
    data = noise()
    runs: dict[str, Callable[[], float]] = {"forward": lambda: forward_seconds(data)}
    for name in ("erm", *COMPARED):
        runs[name] = functools.partial(step_seconds, made(name), data)
    runs["patches"] = functools.partial(step_seconds, made("erm"), data, functools.partial(patches, data))
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            seconds[name].append(run())
    forward, plain, other = (statistics.median(seconds[name]) for name in ("forward", "erm", "patches"))
    print(f"plain training: {1e3 * plain:.0f} ms a step, of which {1e3 * forward:.0f} ms are the pass forward")
    holds = []
    for name in COMPARED:
        ahead, back = PASSES.get(name, (1.0, 1.0))
        over_plain = statistics.median(own / erm for own, erm in zip(seconds[name], seconds["erm"], strict=True))
        arithmetic = (ahead * forward + back * (plain - forward) + (other if name == "rebias" else 0.0)) / plain
        what = f"{name}: {over_plain:.2f} of a plain step, {ahead:.2g} forward and {back:.2g} backward; over these"
        holds.append(verdict(what, over_plain / arithmetic, at_most=1.2))
    return all(holds)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
