"""Methods that abstain, where a shortcut misleads: who answers what at a target of 90 %, and how wrong that is.

    python scripts/abstaining.py [--sets colored_mnist,petscapes] [--seeds 0,1,2] [--runs runs] [--data-dir DIR]

Thresholds are chosen on validation images, which follow the shortcut as the training images do. *Against* are the test
images that do not. Settings are those of the comparisons, at one rate; `masktune` cannot work with frozen features.
Rows that are there already are not made again: results/abstaining.json.
"""

from __future__ import annotations

import argparse
import itertools
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from stored_rows import add_row

from unspur.data.base import Split, aligned_with
from unspur.data.files.fetch import DataFiles
from unspur.evaluation.abstention import LEARNED
from unspur.papers.reproduce import parse_seeds
from unspur.runs.config import Config
from unspur.runs.entries import enter
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.scoring import score_run
from unspur.version import commit

FILE = Path("results/abstaining.json")
COVERAGE = 0.9
# A method, and how its answer comes about (unspur/evaluation/abstention.py).
MODES = {
    "softmax_response": "softmax_response",
    "osp": "softmax_response",
    "selectivenet": LEARNED,
    "deep_gamblers": LEARNED,
    "masktune": "product",
}


class Case(NamedTuple):
    """A set with a shortcut, and how everything is trained on it."""

    test: str
    methods: tuple[str, ...]
    settings: tuple[str, ...]
    arch: str | None = None  # the usual network for photographs


ADAM = tuple(f"{recipe}{own}" for recipe in ("erm", "training") for own in ("=adam", ".epochs=6", ".batch_size=128"))
CASES = {
    "colored_mnist": Case(
        "unbiased", tuple(MODES), ("data.base=mini", "data.conflict=0.01", "data.val=4000", *ADAM), "small_cnn"
    ),
    "petscapes": Case("test", tuple(MODES)[:-1], ("arch.freeze=backbone", "deep_gamblers:payoff=1.8")),
}


def row(config: Config, test: str, args: argparse.Namespace) -> dict[str, Any]:
    """What a method answers, and how wrong it is, on all test images and on those that go against the shortcut."""
    run(config, args.runs, data_dir=args.data_dir, resume=True)
    scored = score_run(Run.create(args.runs, config).folder, None, (), args.data_dir, COVERAGE)
    found = scored["selective"][test][MODES[config.method.name]]
    train, groups = config.data.load(DataFiles(args.data_dir)).train, found["groups"]
    names = {name: torch.tensor([group["attributes"][name] for group in groups]) for name in train.attributes}
    follows = aligned_with(train, Split(torch.zeros(len(groups), 1), torch.tensor([g["y"] for g in groups]), names))
    assert follows is not None  # every set here has attributes
    against = [group for group, told in zip(groups, follows.tolist(), strict=True) if not told]
    answered = sum(group["answered"] for group in against)
    wrong = sum(group["answered"] * group["error"] for group in against if group["answered"])
    return {
        "coverage": found["coverage"],
        "error": found["error"],
        "aurc": found["aurc"],
        "against": {
            "n": sum(group["n"] for group in against),
            "coverage": answered / sum(group["n"] for group in against),
            "error": wrong / answered if answered else None,
        },
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
        case = CASES[name]
        entries = enter(case.methods, [name], [seed], arch=case.arch, settings=case.settings, data_dir=args.data_dir)
        for config in (entry.first for entry in entries if entry.method in case.methods):
            place = {"set": name, "seed": seed, "method": config.method.name}
            add_row(FILE, "python scripts/abstaining.py", place, partial(row, config, case.test, args))


if __name__ == "__main__":
    main()
