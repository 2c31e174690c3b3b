"""What can be audited: a folder or table of files, a data set by name, a stored run with its data and its model."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch

from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.images.decode import Unreadable
from unspur.data.images.listing import Listing
from unspur.data.sets.folder import Folder
from unspur.data.spec import DataSpec
from unspur.errors import require
from unspur.practice.audit.collect import Collected, Item, Source, in_memory, listed
from unspur.practice.audit.model import Model, module_predict
from unspur.runs.folder import Run

TRAIN = "train"


class RunToAudit(NamedTuple):
    """A stored run: the images that it was trained and validated on, and its model."""

    source: Source
    run: Run
    data: Dataset

    def model(self, collected: Collected) -> Model:
        """The run's model, to be tested on the pictures that it was not trained on."""
        module = self.run.load_model(self.data)
        held = [
            place
            for place, number in enumerate(collected.pictured.tolist())
            if not collected.names[number].startswith(f"{TRAIN}/")
        ]
        require(
            len(held) > 0,
            f"{self.run.folder} was trained on all of its images, so that none is left to test its model on; "
            "train it with a validation set (data.val).",
        )
        return Model(str(self.run.folder), (module_predict(module, self.data.sample_shape[-1]),), (torch.tensor(held),))


def source_of(spec: DataSpec, data_dir: Path | None = None) -> Source:
    """The images of a data set: files where it is a folder or table, else its training and validation images."""
    if isinstance(spec, Folder):
        return listed(training(spec.listing()))
    return splits_source(spec.load(DataFiles(data_dir)))


def training(listing: Listing) -> Listing:
    """The training images where a table or folders name them: a shortcut is what training images have in common."""
    if listing.splits is None:
        return listing
    numbers = [number for number, split in enumerate(listing.splits) if split == TRAIN]
    left = len(listing) - len(numbers)
    return listing.only(numbers, f"Audited are the training images; {left:,} of other splits were left out.")


def run_source(folder: Path, data_dir: Path | None = None) -> RunToAudit:
    """What a finished run was trained and validated on, and its model."""
    run = Run.open(folder)
    run.finished()
    data = run.config.data.load(DataFiles(data_dir))
    return RunToAudit(splits_source(data), run, data)


def splits_source(data: Dataset) -> Source:
    """Training, then validation images; an image's name says which."""
    parts = [(name, split) for name, split in ((TRAIN, data.train), ("val", data.val)) if len(split)]
    sources = [in_memory(split, data.classes) for _, split in parts]
    ends = torch.tensor([len(source.y) for source in sources]).cumsum(0).tolist()

    def read(number: int, side: int) -> Item:
        for source, end in zip(sources, ends, strict=True):
            if number < end:
                return source.read(number - end + len(source.y), side)
        raise Unreadable(f"has the number {number} of {ends[-1]}")

    return Source(
        read,
        torch.cat([source.y for source in sources]),
        data.classes,
        [f"{name}/{number}" for name, split in parts for number in range(len(split))],
        lambda number: (data.sample_shape[1], data.sample_shape[2]),
        ends[-1],
    )
