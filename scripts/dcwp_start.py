"""Where DCWP's masks should begin, judged on held-out images of a construction that no table has.

    python scripts/dcwp_start.py [--base mini] [--seeds 0,1,2] [--starts 0,1.5] [--set KEY=VALUE]

Digits in ten other colours with ten times the jitter, 2 % of them conflicting. Three in ten of the training images are
held out. Half of these choose what is fine-tuned, as a user's validation images do, and the other half score it, with
colours that have nothing to do with the class. Neither the colours nor the test images of any table are used. A line
for each run goes to results/dcwp-start.jsonl; runs that it has are not repeated.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch

from unspur.core.options import to_json, with_option
from unspur.data.base import Dataset, Images, Split
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.planted_mnist import ColoredMNIST
from unspur.data.shortcuts.drawn import Colour, Shortcut, Tint
from unspur.evaluation.scores import predict
from unspur.methods.dcwp import DCWP
from unspur.models.cnn3 import CNN3
from unspur.papers.reproduce import parse_seeds
from unspur.version import commit

LOG = Path("results/dcwp-start.jsonl")
CONFLICT, JITTER, UP = 0.02, 0.05, 30.0  # UP: lambda_up of the fine-tuning at 2 %, as in the tables
HELD_OUT = {"mini": 3_000, "mnist": 18_000}  # of which half is for choosing, and has 2 % to mine: 30 of the embedded
CHOOSING, SCORING = slice(0, None, 2), slice(1, None, 2)  # held-out images by their places
OTHER_COLOURS: tuple[Colour, ...] = (
    (255, 120, 120), (90, 140, 20), (120, 200, 255), (200, 160, 90), (120, 90, 255),
    (255, 90, 160), (60, 130, 130), (230, 230, 230), (170, 60, 60), (90, 255, 170),
)  # fmt: skip


@dataclass(frozen=True)
class OtherColours(ColoredMNIST):
    """The same digits in other colours; every other validation image is kept for scoring."""

    name: ClassVar[str] = "other_colours"

    @property
    def shortcuts(self) -> dict[str, Shortcut]:
        return {"color": Tint(OTHER_COLOURS, self.jitter)}

    def load(self, files: DataFiles) -> Dataset:
        data = super().load(files)
        return replace(data, val=data.val.subset(torch.arange(len(data.val))[CHOOSING]))

    def held_out(self, files: DataFiles) -> Split:
        """Validation images that choose nothing, in colours that are independent of their class."""
        images: Images = self.parts(files).val
        colour = self.independent("held out", images.y, 10)
        whole = Split(self.planted("held out", self.shortcuts["color"], images.x, colour), images.y, {"color": colour})
        return whole.subset(torch.arange(len(whole))[SCORING])


def score(method: DCWP, data: Dataset, held_out: Split, seed: int) -> dict[str, float]:
    """Accuracy on held-out images of plain training, of the pruned network and of the result."""
    fit = method.fit(CNN3().build(data, seed=seed), data.train, val=data.val, seed=seed)
    models = {**fit.stages, "result": fit.model}
    return {
        name: float((predict(model, held_out).argmax(1) == held_out.y).double().mean())
        for name, model in models.items()
    } | {"kept": float(fit.facts["kept"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="mini", choices=HELD_OUT)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--starts", default="0,1.5")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings of dcwp")
    arguments = parser.parse_args()
    done = [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []
    for seed in parse_seeds(arguments.seeds):
        held = HELD_OUT[arguments.base]
        spec = OtherColours(base=arguments.base, conflict=CONFLICT, jitter=JITTER, seed=seed, val=held)
        data, held_out = spec.load(DataFiles(None)), spec.held_out(DataFiles(None))
        for start in map(float, arguments.starts.split(",")):
            method = DCWP()
            method = replace(method, masks=replace(method.masks, start=start), tuning=replace(method.tuning, up=UP))
            for setting in arguments.set:
                method = with_option(method, *setting.split("=", 1))
            trial = {"base": arguments.base, "seed": seed, "start": start, "method": to_json(method)}
            if any(trial.items() <= line.items() for line in done):
                continue
            line = {**trial, **score(method, data, held_out, seed), "commit": commit()}
            with LOG.open("a") as log:
                log.write(json.dumps(line) + "\n")
            print({name: line[name] for name in ("seed", "start", "erm", "pruned", "result", "kept")}, flush=True)


if __name__ == "__main__":
    main()
