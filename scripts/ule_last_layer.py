"""ULE, ERM and a group-balanced last layer on real pretrained features of photographs with a planted shortcut.

    python scripts/ule_last_layer.py [--classes cat,dog] [--shortcut color] [--seeds 0,1,2,3,4] [--data-dir DIR]

Photographs of two classes of CIFAR-10 (JPEG) are enlarged to 128 pixels and a shortcut is planted that conflicts in 5 %
of the training and validation images and tells nothing of the test images' class. efficientnet_lite0 with its ImageNet
weights stays frozen; its features are computed once and kept in the cache. Seeds draw the heads and the order of
samples. Writes results/ule-last-layer.json after every fit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from unspur.core.files import write_json
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.cifar import CIFAR10, OBJECTS
from unspur.data.sets.folder import Folder
from unspur.data.shortcuts.plant_folder import TABLE, plant
from unspur.errors import UnspurError
from unspur.evaluation.scores import score
from unspur.models.base import head_of
from unspur.papers.reproduce import parse_seeds
from unspur.parts.features import features_of
from unspur.runs.config import configure
from unspur.train.session import Session
from unspur.version import commit

ARCH = "efficientnet_lite0"
SIZE = 128
COUNTS = {"train": 2500, "val": 500, "test": 500}  # of each class
CONFLICT = 0.05
METHODS = {
    "ERM": ("ule_last_layer", ["lams=1", "rule=mean"]),
    "ULE, chosen without group labels": ("ule_last_layer", []),
    "ULE, chosen by the worst group": ("ule_last_layer", ["rule=worst_group"]),
    "balanced groups": ("balanced_last_layer", []),
}
SCORES = ("worst_group_accuracy", "mean_group_accuracy", "aligned_accuracy", "conflicting_accuracy")


def write_photographs(root: Path, classes: list[str], data_dir: Path | None) -> None:
    """Enlarged photographs as root/SPLIT/CLASS/NUMBER.png, the first of each class."""
    data = CIFAR10(cifar="jpeg").load(DataFiles(data_dir))
    for part, split in {"train": data.train, "val": data.val, "test": data.tests["test"]}.items():
        for name in classes:
            folder = root / part / name
            folder.mkdir(parents=True, exist_ok=True)
            for number in (split.y == OBJECTS.index(name)).nonzero().squeeze(1)[: COUNTS[part]]:
                pixels = split.x[number.reshape(1)][0].permute(1, 2, 0).numpy()
                enlarged = Image.fromarray(pixels).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
                enlarged.save(folder / f"{int(number):05d}.png", compress_level=1)


def planted(out: Path, classes: list[str], shortcut: str, data_dir: Path | None) -> Path:
    """The folder with the shortcut planted, made if it is not there."""
    photographs, marked = out / f"photographs-{'-'.join(classes)}", out / f"{shortcut}-{'-'.join(classes)}"
    if not marked.exists():
        write_photographs(photographs, classes, data_dir)
        plant(Folder(root=str(photographs)), shortcut, marked, conflict=CONFLICT)
    return marked


def measured(name: str, seed: int, data: Dataset) -> dict[str, Any]:
    """Scores on the test set, from its features: the model's own answers, without running it anew for every fit."""
    method, own = METHODS[name]
    config = configure(method, "folder", ARCH, seed, own)
    begin = time.monotonic()
    fit = config.method.fit(config.arch.build(data, seed=seed), data.train, val=data.val, seed=seed)
    seconds, test = time.monotonic() - begin, data.tests["test"]
    with torch.no_grad():
        logits = head_of(fit.model)(features_of(fit.model, test, Session(), "test-features"))
    scores = score(logits, test, data.train)
    row = {"method": name, "seed": seed, **{key: scores[key] for key in SCORES}, "chosen": fit.facts["chosen"]}
    print(row, flush=True)
    return row | {"seconds": round(seconds, 1)}


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """The mean and standard deviation over seeds of every score of each method."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        values = {score: [row[score] for row in own] for score in SCORES}
        found[name] = {
            score: [statistics.mean(v), statistics.stdev(v) if len(v) > 1 else 0.0] for score, v in values.items()
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", default="cat,dog")
    parser.add_argument("--shortcut", default="color")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--out", type=Path, default=Path("runs/ule-last-layer"), help="where the images go")
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("UNSPUR_DATA"))
    arguments = parser.parse_args()
    classes, seeds = arguments.classes.split(","), parse_seeds(arguments.seeds)
    folder = planted(arguments.out, classes, arguments.shortcut, arguments.data_dir)
    spec = Folder(root=str(folder), csv=TABLE, attributes=(arguments.shortcut,), size=SIZE)
    data, rows = spec.load(DataFiles(arguments.data_dir)), list[dict[str, Any]]()
    setup = {
        "data": "CIFAR-10 (JPEG)",
        "classes": classes,
        "shortcut": arguments.shortcut,
        "conflict": CONFLICT,
        "images_of_each_class": COUNTS,
        "pixels": SIZE,
        "arch": f"{ARCH}, ImageNet weights, frozen",
        "threads": torch.get_num_threads(),
    }
    found = {"command": " ".join(["python", *sys.argv]), "commit": commit(), "setup": setup, "seeds": seeds}
    for seed in seeds:
        for name in METHODS:
            rows.append(measured(name, seed, data))
            write_json(Path("results/ule-last-layer.json"), found | {"summary": summary(rows), "rows": rows})


if __name__ == "__main__":
    try:
        main()
    except UnspurError as error:
        sys.exit(str(error))
