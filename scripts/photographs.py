"""Every method on photographs with a shortcut: worst group and mean of groups, written as runs end.

    python scripts/photographs.py [--sets petscapes,isic,tagged] [--methods "erm;masktune;..."] [--seeds 0,1,2]
                                  [--runs runs] [--data-dir DIR]
    python scripts/photographs.py --sets tagged --seeds 0 --methods tried

What is trained is what `unspur train METHOD SET` chooses for photographs; methods on frozen features say so in their
row. `tagged` is CIFAR-10 (JPEG)'s cats and dogs, 96 pixels wide, with a watermark that names the class on 95 % of the
training images, made below the folder of runs when first asked for. Networks are fine-tuned at 96 pixels on every set,
so that a run takes minutes on one core, by MaskTune and RandMask at 112, of which EfficientNet-Lite has a map of 7x7;
frozen features are of the sets' usual size. Runs that have ended are read and not repeated.
`tried` are settings of DCWP that are not its defaults, and a method that is given the true groups.
`make results` then writes the tables.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image

from unspur.core.files import read_json, write_json
from unspur.data.catalog import load
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.folder import Folder
from unspur.data.shortcuts.plant_folder import plant
from unspur.errors import UnspurError
from unspur.papers.reproduce import parse_seeds
from unspur.runs.config import configure
from unspur.runs.defaults import given_keys
from unspur.runs.estimate import prepared
from unspur.runs.experiment import run
from unspur.version import commit

FILE = Path("results/photographs.json")
LAYER = "net._blocks.10"  # of EfficientNet-Lite, the last of 112 channels: ULE freezes all before it
FROZEN = ("arch.freeze=backbone",)
# name of a row: method, and its settings
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "erm": ("erm", ()),
    "masktune": ("masktune", ()),
    "randmask": ("randmask", ()),
    "dcwp": ("dcwp", ()),
    "mrm": ("mrm", ()),
    "jtt": ("jtt", ()),
    "large_lr": ("large_lr", ()),
    "ule, at a layer": ("ule", (f"layer={LAYER}",)),
    "erm, frozen": ("erm", FROZEN),
    "jtt, frozen": ("jtt", FROZEN),
    "ule_last_layer": ("ule_last_layer", ()),
    "balanced_last_layer": ("balanced_last_layer", ()),
}
UP_10 = ("masks.up=10", "tuning.up=10")  # the paper's for 5 % of conflicting images
UP_20 = ("masks.up=20", "tuning.up=20")  # 5 % of the images then weigh as much as the rest
FREE = ("masks.start=1.5", "arch.freeze=none")  # the paper's start of the masks, and statistics that follow the pruning
TRIED: dict[str, tuple[str, tuple[str, ...]]] = {  # to gain more on the corner tag
    "dcwp, up 10": ("dcwp", UP_10),
    "dcwp, up 20": ("dcwp", UP_20),
    "dcwp, up 80": ("dcwp", ("masks.up=80", "tuning.up=80")),
    "dcwp, up 20, tuned as long and fast as trained": ("dcwp", (*UP_20, "tuning.steps=315", "tuning.lr=4e-4")),
    "dcwp, up 10, masks from 1.5, batch norm free": ("dcwp", (*UP_10, *FREE)),
    "dcwp, up 20, masks from 1.5, batch norm free": ("dcwp", (*UP_20, *FREE)),
    "group_balanced": ("group_balanced", ()),  # what drawing images more often gives where the true groups are known
}
LAST_LAYER = ("ule_last_layer", "balanced_last_layer")  # methods that always work on frozen features
SIDE, EACH = 96, 1000  # pixels of images on which networks are fine-tuned, and images of a class of `tagged`
FINE = {"masktune": 112, "randmask": 112}  # pixels for methods that need a map of 7x7 of their layer


class Pair(NamedTuple):
    """Images of two CIFAR-10 (JPEG) classes, ``EACH`` of both from number ``first`` on, and what is planted in them."""

    classes: tuple[str, str]
    shortcut: str
    first: int = 0

    def planted(self, plain: Path, planted: Path, data_dir: Path | None, pixels: int = SIDE) -> tuple[str, ...]:
        """The settings that read them from ``planted``, where they are written if they are not there yet."""
        if not planted.exists():
            data = load("cifar10", data_dir, cifar="jpeg")
            for name in self.classes:
                members = (data.train.y == data.classes.index(name)).nonzero().squeeze(1)[self.first :][:EACH]
                (plain / name).mkdir(parents=True, exist_ok=True)
                for number, image in zip(members.tolist(), data.train.x[members], strict=True):
                    picture = Image.fromarray(image.permute(1, 2, 0).numpy())
                    picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(plain / name / f"{number:05}.png")
            plant(Folder(root=str(plain)), self.shortcut, planted, conflict=0.05)
        attributes = f"data.attributes={self.shortcut}"
        return f"data.root={planted}", "data.csv=metadata.csv", attributes, f"data.size={pixels}"


def tagged(runs: Path, data_dir: Path | None, pixels: int = SIDE) -> tuple[str, ...]:
    """The settings that read cats and dogs with a watermark."""
    pair, below = Pair(("cat", "dog"), "watermark"), runs / "photographs"
    return pair.planted(below / "cats-dogs", below / "tagged", data_dir, pixels)


def row(name: str, on: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One run: its scores on every test set, before the repair as well where there is a before."""
    method, settings = {**METHODS, **TRIED}[name]
    size, frozen = FINE.get(method, SIDE), settings == FROZEN or method in LAST_LAYER
    usual = () if frozen else (f"data.size={size}",)
    own = [*settings, *(tagged(arguments.runs, arguments.data_dir, size) if on == "tagged" else usual)]
    config = configure(method, "folder" if on == "tagged" else on, None, seed, own)
    files = DataFiles(arguments.data_dir)
    config = prepared(config, given_keys(config.method, None, own), files, print)
    result = run(config, arguments.runs, data_dir=arguments.data_dir, files=files, resume=True, progress=True)
    kept = ("status", "seconds", "commit", "machine", "threads", "sizes", "warnings", "reason", "key")
    facts = {name: value for name, value in result.get("facts", {}).items() if name in ("mining", "kept")}
    tests = {
        stage: {test: {name: value for name, value in scores.items() if name != "groups"} for test, scores in block}
        for stage, block in _stages(result)
    }
    return {
        "method": name,
        "set": on,
        "seed": seed,
        "tests": tests,
        **facts,
        **{key: result[key] for key in kept if key in result},
    }


def _stages(result: Any) -> list[tuple[str, Any]]:
    before = result.get("baseline")
    stages = [("result", result.get("tests", {}).items())]
    if before:
        stages.insert(0, ("before", result["stages"][before["stage"]]["tests"].items()))
    return stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="petscapes,isic,tagged")
    parser.add_argument(
        "--methods", help=f"separated by ';', of {'; '.join([*METHODS, *TRIED])}, or: tried", default=";".join(METHODS)
    )
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--data-dir", type=Path)
    arguments = parser.parse_args()
    names = list(TRIED) if arguments.methods == "tried" else [name.strip() for name in arguments.methods.split(";")]
    if wrong := [name for name in names if name not in {**METHODS, **TRIED}]:
        parser.error(f"there is no row '{wrong[0]}'; there are {'; '.join([*METHODS, *TRIED])}")
    torch.set_num_threads(1)
    for seed in parse_seeds(arguments.seeds):
        for on in arguments.sets.split(","):
            for name in names:
                try:
                    done = row(name, on, seed, arguments)
                except UnspurError as error:
                    print(f"{name} on {on}, seed {seed}: {error}")
                    continue
                stored = read_json(FILE) if FILE.exists() else {"command": "python scripts/photographs.py", "rows": []}
                place = {"method": done["method"], "set": on, "seed": seed}
                others = [old for old in stored["rows"] if any(old[key] != value for key, value in place.items())]
                write_json(FILE, {**stored, "commit": commit(), "rows": [*others, done]})


if __name__ == "__main__":
    main()
