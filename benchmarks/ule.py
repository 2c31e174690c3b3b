"""ULE: from scratch at most 3.5 x an ERM step; on cached features at most 2 x logistic regression; the grid at once.

    python benchmarks/ule.py [--steps 8] [--repeats 5] [--epochs 1]

All in one process and timed in turns; medians. The first compares whole fits of cnn2 in batches of 64 on the same
random images: ERM in the shared loop, and ULE with its two networks and second derivative. The second compares an epoch
of one teacher and its student on 10,000 x 512 features with an epoch of torch's own linear layer, cross-entropy and
SGD. The third trains the paper's grid of 110 settings on those features at once, and one setting after the other, for
--epochs of its 300 epochs. Exits with 1 if a bound does not hold.
"""

from __future__ import annotations

import argparse
import itertools
import sys

import torch
from side_by_side import compare, verdict
from torch import nn
from torch.nn import functional

from unspur.data.base import Dataset, Split
from unspur.methods.erm import ERM
from unspur.methods.ule import ULE
from unspur.methods.ule_last_layer import ULELastLayer
from unspur.models.catalog import build_model
from unspur.parts.heads import Head
from unspur.parts.last_layer import Cached, ChosenBy, Plan, search
from unspur.train.orders import epoch_batches
from unspur.train.recipe import Adadelta
from unspur.train.session import Session

SAMPLES, WIDTH, CLASSES = 10_000, 512, 2  # two classes, as in most of the paper's sets


def from_scratch(steps: int, repeats: int) -> bool:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (64 * steps, 1, 28, 28), dtype=torch.uint8, generator=generator)
    split = Split(x, torch.randint(10, (len(x),), generator=generator))
    data = Dataset("random", split, split, {}, tuple("0123456789"), mean=(0.1307,), std=(0.3081,))
    recipe = Adadelta(epochs=1)
    seconds = compare(
        {
            "ERM": lambda: ERM(erm=recipe).fit(build_model("cnn2", data), split),
            "ULE": lambda: ULE(erm=recipe).fit(build_model("cnn2", data), split),
        },
        repeats,
    )
    print(f"cnn2, {steps} steps of 64: " + ", ".join(f"{name} {value:.3f} s" for name, value in seconds.items()))
    return verdict("ULE / ERM from scratch", seconds["ULE"] / seconds["ERM"], at_most=3.5)


def features() -> Cached:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(SAMPLES, WIDTH, generator=generator).relu_()
    y = (x[:, 0] + 0.5 * torch.randn(SAMPLES, generator=generator) > 0.4).long()
    first = [nn.init.kaiming_uniform_(torch.empty(CLASSES, WIDTH), generator=generator) for _ in range(2)]
    heads = [Head(weight, torch.zeros(CLASSES)) for weight in first]
    return Cached(x, functional.one_hot(y).float().T.contiguous(), x[:1000], y[:1000], *heads, sees=None)


def logistic_regression(data: Cached, epochs: int) -> None:
    """As anybody would write it."""
    y = data.targets.argmax(0)
    model = nn.Linear(WIDTH, CLASSES)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    for epoch in range(epochs):
        for index in epoch_batches(len(y), 128, torch.Generator().manual_seed(epoch)):
            loss = functional.cross_entropy(model(data.x[index]), y[index])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def train(plan: Plan, data: Cached) -> None:
    everybody = ChosenBy("mean", torch.zeros(len(data.val_y), dtype=torch.long))
    search(plan._replace(every=plan.epochs), data, everybody, stage="heads", session=Session())


def on_features(data: Cached, repeats: int) -> bool:
    plan = ULELastLayer(lams=(0.5,), lrs=(0.01,), l2s=(1e-4,), epochs=5).plan
    seconds = compare(
        {"logistic regression": lambda: logistic_regression(data, 5), "ULE": lambda: train(plan, data)}, repeats
    )
    told = ", ".join(f"{name} {value / 5 * 1e3:.1f} ms" for name, value in seconds.items())
    print(f"an epoch on {SAMPLES} x {WIDTH} features: {told}")
    return verdict("ULE / logistic regression", seconds["ULE"] / seconds["logistic regression"], at_most=2)


def whole_grid(data: Cached, epochs: int) -> bool:
    """The paper's settings: together, and one by one."""
    plan = ULELastLayer(epochs=epochs).plan
    points = [
        plan._replace(lams=(lam,), lrs=(lr,), l2s=(l2,))
        for lam, lr, l2 in itertools.product(plan.lams, plan.lrs, plan.l2s)
    ]

    def one_by_one() -> None:
        for point in points:
            train(point, data)

    seconds = compare({"together": lambda: train(plan, data), "one by one": one_by_one}, repeats=1)
    told = ", ".join(f"{name} {value:.2f} s ({value * 300 / epochs:.0f} s for 300)" for name, value in seconds.items())
    print(f"{len(points)} settings, {epochs} of 300 epochs: {told}")
    return verdict("one by one / together", seconds["one by one"] / seconds["together"], at_least=5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{torch.get_num_threads()} threads")
    data = features()
    holds = [
        from_scratch(arguments.steps, arguments.repeats),
        on_features(data, arguments.repeats),
        whole_grid(data, arguments.epochs),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
