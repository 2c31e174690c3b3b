"""Images to train on, as unspur wants them and as a PyTorch loop does: in memory, or photographs in files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from unspur.data.base import groups_of
from unspur.data.catalog import load

BATCH = 128
FEW = 2 * BATCH  # images to warm up with
SIDE, TESTED = 64, 8  # pixels of a photograph, and how many are there to test on, which a data set must have


class Digits:
    """Images in memory."""

    loaders = 0

    def __init__(self, folder: Path, count: int) -> None:
        self.data = load("biased_mnist", base="mini", val=500)
        self.train = self.data.train.subset(torch.arange(count))

    def split(self, count: int | None = None) -> Any:
        """What unspur trains on."""
        return self.train if count is None else self.train.subset(torch.arange(count))

    def pairs(self, count: int | None = None) -> Dataset[tuple[Tensor, Tensor]]:
        """What the others train on."""
        split = self.split(count)
        return TensorDataset(split.x.float() / 255, split.y)

    def groups(self, count: int | None = None) -> Tensor:
        """The number of each image's group."""
        return groups_of(self.split(count)).id


class Photographs:
    """Images in files, half of them of each class, in four groups."""

    loaders = os.cpu_count() or 1

    def __init__(self, folder: Path, count: int) -> None:
        self.root = folder
        files = sorted((folder / "images").iterdir())
        self.files = files[:count]
        for table, number in (("all.csv", count), ("few.csv", FEW)):
            parts = [(file, "train") for file in files[:number]] + [(file, "test") for file in files[count:]]
            rows = [f"images/{file.name},{at % 2},{part},{at // 2 % 2}" for at, (file, part) in enumerate(parts)]
            (folder / table).write_text("\n".join(["filename,label,split,place", *rows]) + "\n")
        self.data = self._load("few.csv")

    def _load(self, table: str) -> Any:
        # A cache of its own each time, so that nothing has been decoded before.
        os.environ["UNSPUR_CACHE"] = tempfile.mkdtemp(dir=self.root)
        return load("folder", root=str(self.root), csv=table, attributes=("place",), size=SIDE, val=0.0)

    def split(self, count: int | None = None) -> Any:
        return self._load("few.csv" if count else "all.csv").train

    def pairs(self, count: int | None = None) -> Dataset[tuple[Tensor, Tensor]]:
        return Files(self.files[:count])

    def groups(self, count: int | None = None) -> Tensor:
        return torch.arange(len(self.files[:count])) % 4


class Files(Dataset[tuple[Tensor, Tensor]]):
    """Photographs as torchvision's users read them: opened, resized and turned into a tensor whenever one is wanted."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        self.labels = torch.arange(len(files)) % 2

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, at: int) -> tuple[Tensor, Tensor]:
        with Image.open(self.files[at]) as opened:
            pixels = np.array(opened.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))
        return torch.from_numpy(pixels).permute(2, 0, 1).float() / 255, self.labels[at]


Source = Digits | Photographs
SOURCES: dict[str, Callable[[Path, int], Source]] = {"digits": Digits, "photographs": Photographs}
