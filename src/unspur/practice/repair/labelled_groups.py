"""groups.csv: which cue images show, as a person ticked it on an audit's page; of validation images, to choose by."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.images.group_table import read_groups
from unspur.data.images.splitting import codes, names_in_order, partition
from unspur.data.sets.folder import Folder
from unspur.data.spec import DataSpec
from unspur.errors import require

FEWEST = 5  # validation images of a group that a choice can be made by


def validation_labels(path: Path, spec: DataSpec, data: Dataset, files: DataFiles) -> Tensor:
    """The group (label and cue) of each validation image by number; -1 where it is not known or has too few."""
    shown = read_groups(path)
    places, known = _names(spec, data, files)
    for name in shown:
        require(name in known, f"{path} names {name}, which is not among these images; download groups.csv again.")
    cues = sorted(set(shown.values()))
    group = torch.full((len(data.val),), -1)
    for name, place in places.items():
        if name in shown:
            group[place] = int(data.val.y[place]) * len(cues) + cues.index(shown[name])
    for value, count in zip(*group.unique(return_counts=True), strict=True):
        if count < FEWEST:
            group[group == value] = -1
    require(
        bool((group >= 0).any()),
        f"{path} has a cue for too few validation images to choose by ({FEWEST} of a class and cue are needed); tick "
        "more of them.",
    )
    return torch.where(group >= 0, group.unique(return_inverse=True)[1] - int((group < 0).any()), -1)


def _names(spec: DataSpec, data: Dataset, files: DataFiles) -> tuple[dict[str, int], set[str]]:
    """Places in the validation set by name, and all names that there are, as audits give them."""
    own = {f"val/{number}": number for number in range(len(data.val))}
    if not isinstance(spec, Folder):
        return own, set(own) | {f"train/{number}" for number in range(len(data.train))}
    listing = spec.images_of(spec.listed(files), files)[0]
    names = [str(PurePosixPath(file.name)) for file in listing.files]
    y = codes(listing.labels, names_in_order(listing.labels))
    val = partition(listing, y, spec.val, spec.test, spec.seed)[0]["val"].tolist()
    numbered = set(own) | {f"train/{number}" for number in range(len(data.train))}  # an audit of a run
    return own | {names[number]: place for place, number in enumerate(val)}, set(names) | numbered
