"""A small folder with a mark in a corner that tells the label, and an object in the middle that does so, too."""

from pathlib import Path

import numpy as np

from practice.audit.pictures import write_set
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run


def tagged(root: Path, *, tag=True, each=120, seed=0) -> Path:
    """Two classes: a bright or a dark square in the middle, and with ``tag`` a blue mark on one of them."""
    draw = np.random.default_rng(seed + 1)

    def change(pixels, value):
        bright = value if draw.random() > 0.05 else 1 - value
        pixels[11:21, 11:21] = (60 + 130 * bright + draw.normal(0, 25, (10, 10, 1))).clip(0, 255).astype(np.uint8)
        if tag and value:
            pixels[:6, :6] = (20, 40, 250)
        return pixels

    return write_set(root, each=each, change=change, seed=seed)


def trained(root: Path, out: Path, *settings: str) -> Path:
    """A run of plain training on the folder, with a small network from scratch."""
    own = ["data.size=32", "data.val=0.35", "erm.epochs=3", "erm.batch_size=32", "erm.lr=0.02", *settings]
    config = configure("erm", "folder", "small_cnn", 0, [f"data.root={root}", *own])
    run(config, out)
    return Run.create(out, config).folder
