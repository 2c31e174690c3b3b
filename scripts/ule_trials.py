"""Which reading of ULE works from scratch, chosen on training images alone: the log of trials.

    python scripts/ule_trials.py [--base mini] [--images 6400] [--epochs 3] [--only TEXT]

Each trial trains cnn2 on a part of the training images with a planted shortcut and scores it on other training images,
held out, with the shortcut and without it; the test sets are not touched. Trials that results/ule-trials.jsonl has are
not done again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from unspur.core.options import to_json
from unspur.core.seeds import stream
from unspur.data.base import Dataset, Split
from unspur.data.catalog import load
from unspur.evaluation.scores import predict
from unspur.methods.base import Method
from unspur.metrics.shortcut import shortcut_effect
from unspur.models.catalog import build_model
from unspur.papers.ule import LAMBDA
from unspur.runs.config import configure
from unspur.version import commit

LOG = Path("results/ule-trials.jsonl")
SETS = ("mnist_sc", "colored_mnist", "mnist")
ADAM = ["erm=adam", "erm.batch_size=64"]
# First at a constant rate, as in PyTorch's MNIST example but for its slow decay, and one setting changed at a time.
FIRST: list[list[str]] = [
    [],
    ["scalar=probability"],
    ["scalar=label"],
    ["over=sample"],
    ["distance=l1"],
    *([f"lam={lam}"] for lam in (0.005, 0.01, 0.02, 0.1, 0.2, 0.5)),
    *(["scalar=probability", f"lam={lam}"] for lam in (0.005, 0.01)),
    *(["scale=equal", f"lam={lam}"] for lam in (0.05, 0.5, 0.9)),
    ADAM,
    ["erm=sgd", "erm.lr=0.05", "erm.batch_size=64"],
    ["student=cnn3"],
    ["student=cnn3", "compare=activations"],
]
FALLING = [[f"lam={lam}"] for lam in (0.01, 0.02, 0.03, 0.05)]  # then at a rate that falls to zero


def trials() -> Iterator[tuple[str, str, list[str], int]]:
    """Method, data set, settings and seed: ERM, every reading on both shortcuts, and the defaults with another seed."""
    constant, falling = "erm.schedule=constant", "erm.schedule=cosine"
    for name in SETS:
        for schedule in (constant, falling):
            yield "erm", name, ["erm=adadelta", schedule], 0
    yield "erm", "mnist_sc", ADAM, 0
    for settings in FIRST:
        for name in ("mnist_sc", "colored_mnist"):
            yield "ule", name, ["lam=0.05", *settings, constant], 0
    for settings in FALLING:
        for name in ("mnist_sc", "colored_mnist"):
            yield "ule", name, [*settings, falling], 0
    for name in SETS:
        yield "ule", name, list(LAMBDA.get(name, ())), 1


def held_out(name: str, base: str, images: int) -> tuple[Dataset, Split, Split]:
    """The set with a part of its training images, and its validation images with and without the shortcut."""
    options: dict[str, Any] = {"conflict": 0.0} if name == "colored_mnist" else {}
    data, plain = load(name, base=base, **options), load("mnist", base=base)
    if not torch.equal(data.val.y, plain.val.y):
        raise SystemExit(f"{name} holds other images out than mnist.")
    some = torch.randperm(len(data.train), generator=stream(0, "trials"))[:images]
    clean = Split(plain.val.x.expand(-1, data.sample_shape[0], -1, -1).contiguous(), plain.val.y)
    return data, data.train.subset(some), clean


def score(method: Method, name: str, base: str, images: int, seed: int) -> dict[str, Any]:
    data, train, clean = held_out(name, base, images)
    begin = time.process_time()
    fit = method.fit(build_model("cnn2", data, seed=seed), train.without_attributes(), seed=seed)
    found: dict[str, Any] = {"seconds": round(time.process_time() - begin, 1)}
    for role, model in {"model": fit.model, **fit.stages}.items():
        on, off = predict(model, data.val), predict(model, clean)
        right = [float((logits.argmax(1) == clean.y).double().mean()) for logits in (on, off)]
        found[role] = {"with": right[0], "without": right[1], "effect": shortcut_effect(on, off)._asdict()}
    return found | {"facts": dict(fit.facts)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="mini", choices=["mini", "mnist"])
    parser.add_argument("--images", type=int, default=6400)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--only", default="", help="the trials whose description has this text")
    arguments = parser.parse_args()
    LOG.parent.mkdir(exist_ok=True)
    known = [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []
    done = [(line["data"], line["seed"], line["where"], line["method"]) for line in known]
    for name, data, settings, seed in trials():
        where = f"{arguments.images} of {arguments.base}"
        config = configure(name, data, "cnn2", seed, [*settings, f"erm.epochs={arguments.epochs}"])
        method = to_json(config.method)
        trial = " ".join([name, data, *settings, f"seed={seed}", f"({where}, {arguments.epochs} epochs)"])
        if (data, seed, where, method) in done or arguments.only not in trial:
            continue
        line = {"trial": trial, "data": data, "seed": seed, "where": where, "method": method, "commit": commit()}
        line |= score(config.method, data, arguments.base, arguments.images, seed)
        with LOG.open("a") as log:
            log.write(json.dumps(line) + "\n")
        print(trial, line["model"], flush=True)


if __name__ == "__main__":
    main()
