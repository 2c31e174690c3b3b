"""Who finds the samples that go against a shortcut, and what one and the same training makes of each find.

    python scripts/who_finds.py [--sets colored_mnist,biased_mnist,petscapes] [--seeds 0,1,2] [--runs runs]

Every miner looks at the same training samples. Then `group_balanced` trains with what was found in the place of group
labels: each class's found samples, and its others, are drawn alike often. It is told nothing else, so that rows differ
by the find alone. *nobody* finds nothing (classes are drawn alike often), *truth* all real exceptions. Settings are
those of the comparisons; the training has the rate that was chosen for `group_balanced` there, without group labels.
Rows that are there already are not made again: results/mining.json.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from stored_rows import add_row
from torch import Tensor, nn

from unspur.data.base import Dataset, aligned_with
from unspur.data.files.fetch import DataFiles
from unspur.evaluation.scores import evaluate
from unspur.methods.base import LogitsMethod
from unspur.models.base import head_of
from unspur.papers.reproduce import parse_seeds
from unspur.parts.features import frozen_body, on_features
from unspur.parts.mining import GCE, EarlyStopped, EpochEnsemble, Miner, mining_quality
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.sources import splits_source, train_words
from unspur.practice.audit.stored import SUSPECTS, audit_into
from unspur.runs.config import Config
from unspur.runs.entries import enter
from unspur.train.session import Session
from unspur.version import commit

FILE = Path("results/mining.json")
TRAINER = "group_balanced"
NEW = ("=adam", ".epochs=6", ".batch_size=128")
DIGITS = (
    "data.base=mini", "data.conflict=0.01", "erm=adam", "erm.batch_size=128",
    *(f"{recipe}{setting}" for recipe in ("training", "twins", "attribute") for setting in NEW),
)  # fmt: skip


class Case(NamedTuple):
    """A set with a shortcut, and how everything is trained on it."""

    test: str
    settings: tuple[str, ...]
    arch: str | None = "small_cnn"  # None: the usual network for photographs
    rate: float = 1.0  # times the usual one, of the training: what the comparison chose without groups


CASES = {
    "colored_mnist": Case("unbiased", ("data.val=4000", *DIGITS)),
    "biased_mnist": Case("biased", ("data.val=6000", *DIGITS), rate=0.1),
    "petscapes": Case("test", ("arch.freeze=backbone",), None, rate=0.1),
}
# Methods that mine, or infer groups. Of the first ones a second training is left out: the find has no part in it.
BRIEF, SECOND = ("erm.epochs=1",), ("training.epochs=0",)
METHODS = {
    "jtt": (*BRIEF, *SECOND), "eiil": (*BRIEF, *SECOND), "spare": (*BRIEF, *SECOND), "ssa": SECOND, "xrm": SECOND,
    "ula": SECOND, "lff": (), "disent": (),
}  # fmt: skip


class Bench(NamedTuple):
    """A set as everybody here sees it, with one seed."""

    images: Dataset
    data: Dataset  # the same, or the features of a frozen network
    configs: dict[str, Config]  # of the methods that can work with it
    name: str
    runs: Path

    def network(self) -> nn.Module:
        """As every training begins; a head alone where features are seen."""
        config = self.configs[TRAINER]
        model = config.arch.build(self.images, seed=config.seed)
        return model if self.data is self.images else head_of(model)


def bench(name: str, seed: int, runs: Path, data_dir: Path | None) -> Bench:
    case = CASES[name]
    own = [f"{method}:{setting}" for method, settings in METHODS.items() for setting in settings]
    settings = [*case.settings, *own]
    entries = enter([*METHODS, TRAINER], [name], [seed], arch=case.arch, settings=settings, data_dir=data_dir)
    configs = {entry.method: entry.first for entry in entries if not entry.left_out}
    images = configs[TRAINER].data.load(DataFiles(data_dir))
    model = configs[TRAINER].arch.build(images, seed=seed)
    if not frozen_body(model):
        return Bench(images, images, configs, name, runs)
    parts = {"train": images.train, "val": images.val, **images.tests}
    configs = {method: config for method, config in configs.items() if isinstance(config.method, LogitsMethod)}
    seen = {part: on_features(model, split, Session(seed=seed), part) for part, split in parts.items()}
    features = replace(images, train=seen.pop("train"), val=seen.pop("val"), tests=seen)
    return Bench(images, features, configs, name, runs)


def exceptions(bench: Bench) -> Tensor:
    """The truth: which training samples do not follow the correlation."""
    aligned = aligned_with(bench.data.train, bench.data.train)
    assert aligned is not None  # every set here has attributes
    return ~aligned


def suspects(bench: Bench) -> Tensor:
    """What an audit of the images names, without group labels and without training."""
    source = splits_source(bench.images, {"train": bench.images.train})
    target = train_words(bench.configs[TRAINER].data)
    audit = audit_into(bench.runs / "audits", f"found-{bench.name}", source, target=target, settings=Settings())
    with (audit.folder / SUSPECTS).open(encoding="utf-8", newline="") as file:
        numbers = [int(line["filename"].removeprefix("train/")) for line in csv.DictReader(file)]
    found = torch.zeros(len(bench.data.train), dtype=torch.bool)
    found[numbers] = True
    return found


def of_miner(make: Callable[[Any], Miner]) -> Callable[[Bench], Tensor]:
    """What one of DCWP's miners finds, with the optimiser of the trainer."""

    def find(bench: Bench) -> Tensor:
        config = bench.configs[TRAINER]
        miner = make(config.method.training)  # type: ignore[attr-defined]
        return miner.mine(bench.network(), bench.data.train, None, Session(seed=config.seed)).train

    return find


def of_method(name: str) -> Callable[[Bench], Tensor]:
    """What a method mined, or the group that it inferred."""

    def find(bench: Bench) -> Tensor:
        config = bench.configs[name]
        fit = config.method.fit(bench.network(), bench.data.train, val=bench.data.val, seed=config.seed)
        assert fit.mining is not None
        return fit.mining.train

    return find


FINDERS: dict[str, Callable[[Bench], Tensor]] = {
    "nobody": lambda bench: torch.zeros(len(bench.data.train), dtype=torch.bool),
    "truth": exceptions,
    "suspects": suspects,
    "gce": of_miner(lambda plain: GCE(training=replace(plain, epochs=max(1, plain.epochs // 2)))),
    "early_erm": of_miner(lambda plain: EarlyStopped(training=replace(plain, epochs=1))),
    "ensemble": of_miner(lambda plain: EpochEnsemble(training=plain)),
    **{name: of_method(name) for name in METHODS},
}


def row(bench: Bench, finder: str) -> dict[str, Any]:
    """What one finds, and what the training makes of it."""
    found, data, trainer = FINDERS[finder](bench), bench.data, bench.configs[TRAINER]
    train = replace(data.train, attributes={"found": found.long()})
    case, recipe = CASES[bench.name], trainer.method.training  # type: ignore[attr-defined]
    method = replace(trainer.method, training=replace(recipe, lr=case.rate * recipe.lr))  # type: ignore[call-arg]
    score = evaluate(method.fit(bench.network(), train, seed=trainer.seed).model, data)[case.test]
    return {
        **mining_quality(found.nonzero().squeeze(1), data.train),
        "found": int(found.sum()),
        "exceptions": int(exceptions(bench).sum()),
        "mean_group_accuracy": score["mean_group_accuracy"],
        "worst_group_accuracy": score["worst_group_accuracy"],
        "sizes": {"train": len(train)},
        "commit": commit(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(CASES))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--data-dir", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name, seed in itertools.product(args.sets.split(","), parse_seeds(args.seeds)):
        at = bench(name, seed, args.runs, args.data_dir)
        for finder in FINDERS:
            if finder not in METHODS or finder in at.configs:
                place = {"set": name, "seed": seed, "finder": finder}
                add_row(FILE, "python scripts/who_finds.py", place, partial(row, at, finder))


if __name__ == "__main__":
    main()
