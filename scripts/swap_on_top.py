"""Other methods trained on swap's copies beside the images: does what they do add to it? results/swap-on-top.json.

    python scripts/swap_on_top.py [--seeds 0,1,2]

Embedded digits, 1 % conflicting, `small_cnn`, Adam, batches of 128; the cues are those that the audits find
(results/swap.json). Every method takes as many steps on images and copies as it takes on images alone. A copy's group,
which `groupdro` reads, is its own label with its donor's attribute. Rows that are there already are not made again.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from stored_rows import add_row

from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.data.files.fetch import DataFiles
from unspur.evaluation.scores import evaluate
from unspur.papers.reproduce import parse_seeds
from unspur.parts.cues.texts import cues_of
from unspur.parts.swapping import CueExchange, usual_share, with_copies
from unspur.runs.config import configure
from unspur.version import commit

FILE = Path(__file__).parents[1] / "results" / "swap-on-top.json"


class Case(NamedTuple):
    """A set with a shortcut."""

    data: str
    cue: str  # that its audit finds
    copies: int  # of each image
    epochs: int  # on images alone
    test: str  # the test set that counts


CASES = {
    "a blue square": Case("biased_mnist", "cells:8x8:c0c0000000000000", 1, 6, "biased"),
    "digit's colour": Case("colored_mnist", "cast", 4, 10, "unbiased"),
}
ADAM = ("{}=adam", "{}.batch_size=128", "{}.epochs={}")
GATES = ("masks.steps=141", "masks.batch_size=128", "tuning.steps=141", "tuning.batch_size=128")
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {  # the main training of each, and what else it is told
    "erm": ("erm", ()),
    "masktune": ("erm", ()),
    "dcwp": ("erm", ("mining.training.batch_size=128", *GATES)),
    "groupdro": ("training", ()),
}


def swapped(split: Split, case: Case, seed: int) -> Split:
    """The images and their copies; a copy has the attribute of its donor."""
    share, exchange = usual_share(len(split.y.unique())), CueExchange(cues_of([case.cue]))
    donors = exchange.donors(split, case.copies, share, stream(seed, "donors"))
    attributes = {name: torch.cat([value, *value[donors]]) for name, value in split.attributes.items()}
    return replace(with_copies(split, exchange, case.copies, seed, share=share), attributes=attributes)


def row(name: str, method: str, on_top: bool, seed: int, data_dir: Path | None) -> dict[str, Any]:
    case, (training, own) = CASES[name], METHODS[method]
    epochs = case.epochs // (1 + case.copies) if on_top else case.epochs
    settings = [text.format(training, epochs) for text in ADAM] + [*own, "data.base=mini", "data.conflict=0.01"]
    if method == "dcwp":  # as many steps of the biased model, too
        settings.append(f"mining.training.epochs={max(1, 9 // (1 + case.copies)) if on_top else 9}")
    config = configure(method, case.data, "small_cnn", seed, settings)
    data = config.data.load(DataFiles(data_dir))
    train = swapped(data.train, case, seed) if on_top else data.train
    began = time.monotonic()
    fit = config.method.fit(config.arch.build(data, seed=seed), train, val=data.val, seed=seed)
    score = evaluate(fit.model, data)[case.test]
    return {
        "accuracy": score["accuracy"],
        "worst_group_accuracy": score["worst_group_accuracy"],
        "settings": settings,
        "sizes": {"train": len(data.train)},
        "seconds": round(time.monotonic() - began, 1),
        "commit": commit(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = [
        {"set": name, "method": method, "swap": on_top, "seed": seed}
        for seed in parse_seeds(options.seeds)
        for name in CASES
        for method in METHODS
        for on_top in (False, True)
    ]
    for place in wanted:
        make = partial(row, place["set"], place["method"], place["swap"], place["seed"], options.data_dir)
        add_row(FILE, "python scripts/swap_on_top.py", place, make)


if __name__ == "__main__":
    main()
