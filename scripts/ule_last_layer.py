"""ULE, ERM and a group-balanced last layer on real pretrained features of photographs with a planted shortcut.

    python scripts/ule_last_layer.py [--classes cat,dog] [--shortcut watermark] [--seeds 0,1,2,3,4] [--data-dir DIR]

Photographs of two classes of CIFAR-10 (JPEG) are enlarged to 128 pixels and a shortcut is planted that conflicts in 5 %
of the training and validation images and tells nothing of the test images' class. efficientnet_lite0 with its ImageNet
weights stays frozen; its features are computed once. Seeds draw the heads and the order of samples. Finished runs are
not done again. Writes results/ule-last-layer.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from unspur.config import configure
from unspur.data.cifar import CIFAR10, OBJECTS
from unspur.data.fetch import DataFiles
from unspur.data.folder import Folder
from unspur.data.plant import TABLE, plant
from unspur.errors import UnspurError
from unspur.experiment import run
from unspur.files import write_json
from unspur.papers.reproduce import commit, parse_seeds

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
                enlarged.save(folder / f"{int(number):05d}.png")


def planted(out: Path, classes: list[str], shortcut: str, data_dir: Path | None) -> Path:
    """The folder with the shortcut planted, made if it is not there."""
    photographs, marked = out / f"photographs-{'-'.join(classes)}", out / f"{shortcut}-{'-'.join(classes)}"
    if not marked.exists():
        write_photographs(photographs, classes, data_dir)
        plant(Folder(root=str(photographs)), shortcut, marked, conflict=CONFLICT)
    return marked


def measured(name: str, seed: int, settings: list[str], runs: Path) -> dict[str, Any]:
    method, own = METHODS[name]
    result = run(configure(method, "folder", "efficientnet_lite0", seed, [*settings, *own]), runs, resume=True)
    scores = {score: result["tests"]["test"][score] for score in SCORES}
    row = {"method": name, "seed": seed, **scores, "chosen": result["facts"]["chosen"], "seconds": result["seconds"]}
    print(row, flush=True)
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """The mean and standard deviation over seeds of every score of each method."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in METHODS:
        own = [row for row in rows if row["method"] == name]
        values = {score: [row[score] for row in own] for score in SCORES}
        found[name] = {
            score: [statistics.mean(v), statistics.stdev(v) if len(v) > 1 else 0.0] for score, v in values.items()
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", default="cat,dog")
    parser.add_argument("--shortcut", default="watermark")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--out", type=Path, default=Path("runs/ule-last-layer"), help="where images and runs go")
    parser.add_argument("--data-dir", type=Path)
    arguments = parser.parse_args()
    classes, seeds = arguments.classes.split(","), parse_seeds(arguments.seeds)
    folder = planted(arguments.out, classes, arguments.shortcut, arguments.data_dir)
    settings = [f"data.root={folder}", f"data.csv={TABLE}", f"data.attributes={arguments.shortcut}"]
    rows = [measured(name, seed, settings, arguments.out) for seed in seeds for name in METHODS]
    setup = {
        "data": "CIFAR-10 (JPEG)",
        "classes": classes,
        "shortcut": arguments.shortcut,
        "conflict": CONFLICT,
        "images_of_each_class": COUNTS,
        "pixels": SIZE,
        "arch": "efficientnet_lite0, ImageNet weights, frozen",
        "threads": torch.get_num_threads(),
    }
    found = {"command": " ".join(["python", *sys.argv]), "commit": commit(), "setup": setup, "seeds": seeds}
    write_json(Path("results/ule-last-layer.json"), found | {"summary": summary(rows), "rows": rows})


if __name__ == "__main__":
    try:
        main()
    except UnspurError as error:
        sys.exit(str(error))
