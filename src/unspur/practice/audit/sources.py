"""What can be audited: a folder or table of files, a data set by name, a stored run with its data and its model."""

from __future__ import annotations

import bisect
import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import torch

from unspur.data.base import Dataset, Split
from unspur.data.files.fetch import DataFiles
from unspur.data.images.listing import Listing
from unspur.data.sets.folder import Folder
from unspur.data.spec import DataSpec
from unspur.errors import require
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.image_source import Item, Source, in_memory, listed
from unspur.practice.audit.model import Insight, Model, ModelToTest, module_predict, of_classes
from unspur.runs.folder import Run

TRAIN = "train"


class RunToAudit(NamedTuple):
    """A stored run: the images that it was trained and validated on, and its model."""

    source: Source
    run: Run
    data: Dataset

    def model(self) -> ModelToTest:
        """The run's model, identified by its weights."""
        weights = (self.run.folder / "model.safetensors").read_bytes()
        folder, content = str(self.run.folder), hashlib.sha256(weights).hexdigest()[:32]
        return ModelToTest(folder, content, self._on, max(self.data.sample_shape[1:]), folder)

    def _on(self, collected: Collected) -> Model:
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
        name = self.run.folder.resolve().name
        predict = module_predict(module, self.data.sample_shape)
        answers = of_classes(predict, self.data.classes, collected.classes, name)
        insight = Insight((module,), self.data.sample_shape)
        return Model(name, (answers,), (torch.tensor(held),), insight)


def train_words(spec: DataSpec) -> str:
    """The data set as `unspur train METHOD` takes it: its name and what is set.

    >>> train_words(Folder(root="my photos", size=64))
    "folder --set 'data.root=my photos' --set data.size=64"
    """
    changed = []
    for each in fields(spec):  # type: ignore[arg-type]  # every spec is a dataclass
        value = getattr(spec, each.name)
        words = ",".join(value) if isinstance(value, tuple) else value
        if value != each.default and isinstance(words, str | int | float):
            changed.append(f"data.{each.name}={words}")
    return " ".join([spec.name, *(f"--set {shlex.quote(setting)}" for setting in changed)])


def source_of(spec: DataSpec, data_dir: Path | None = None) -> Source:
    """The training images of a data set: files where it is a folder or table."""
    if isinstance(spec, Folder):
        return listed(training(spec.listing()))
    data = spec.load(DataFiles(data_dir))
    return splits_source(data, {TRAIN: data.train})


def training(listing: Listing) -> Listing:
    """Only the training images, if a table or folders name them: a shortcut is what training images have in common."""
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
    return RunToAudit(splits_source(data, {TRAIN: data.train, "val": data.val}), run, data)


def splits_source(data: Dataset, splits: Mapping[str, Split]) -> Source:
    """The images of some splits of ``data``, one after the other; an image's name says which."""
    parts = [(name, split) for name, split in splits.items() if len(split)]
    sources = [in_memory(split, data.classes) for _, split in parts]
    ends = torch.tensor([len(source.y) for source in sources]).cumsum(0).tolist()

    def at(number: int) -> tuple[Source, int]:
        place = bisect.bisect_right(ends, number)
        return sources[place], number - ends[place] + len(sources[place].y)

    def read(number: int, side: int) -> Item:
        source, own = at(number)
        return source.read(own, side)

    def content(number: int) -> bytes:
        source, own = at(number)
        return source.content(own)

    return Source(
        read,
        torch.cat([source.y for source in sources]),
        data.classes,
        [f"{name}/{number}" for name, split in parts for number in range(len(split))],
        lambda number: (data.sample_shape[1], data.sample_shape[2]),
        ends[-1],
        content,
        training=torch.cat([torch.full((len(split),), name == TRAIN) for name, split in parts]) if parts[1:] else None,
    )
