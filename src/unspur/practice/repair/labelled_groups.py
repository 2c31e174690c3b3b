"""groups.csv, the cues that a person ticked on an audit's page: those of validation images, to choose candidates by."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.images.group_table import cues_in, read_groups
from unspur.data.images.splitting import codes, names_in_order, partition
from unspur.data.sets.folder import Folder
from unspur.data.spec import DataSpec
from unspur.errors import require

FEWEST = 5  # validation images that a group needs to count in a choice


def validation_labels(path: Path, spec: DataSpec, data: Dataset, files: DataFiles) -> Tensor:
    """The group (label and cue) of each validation image by number; -1 where it is not known or has too few."""
    shown = read_groups(path)
    names, known = _names(spec, data, files)
    for name in shown:
        require(name in known, f"{path} names {name}, which is not among these images; download groups.csv again.")
    cues = sorted(set(shown.values()))
    group = torch.full((len(data.val),), -1)
    for place, cue in cues_in("val", names, shown).items():
        group[place] = int(data.val.y[place]) * len(cues) + cues.index(cue)
    for value, count in zip(*group.unique(return_counts=True), strict=True):
        if count < FEWEST:
            group[group == value] = -1
    require(
        bool((group >= 0).any()),
        f"{path} has a cue for too few validation images to choose by ({FEWEST} of a class and cue are needed); tick "
        "more of them.",
    )
    return torch.where(group >= 0, group.unique(return_inverse=True)[1] - int((group < 0).any()), -1)


def _names(spec: DataSpec, data: Dataset, files: DataFiles) -> tuple[list[str], set[str]]:
    """The validation images' file names, if they have any, and all image names that an audit may use."""
    sizes = {"train": len(data.train), "val": len(data.val)}
    numbered = {f"{part}/{number}" for part, size in sizes.items() for number in range(size)}  # by an audit of a run
    if not isinstance(spec, Folder):
        return [""] * len(data.val), numbered
    listing = spec.images_of(spec.listed(files), files)[0]
    y = codes(listing.labels, names_in_order(listing.labels))
    val = partition(listing, y, spec.val, spec.test, spec.seed)[0]["val"].tolist()
    everything = {str(PurePosixPath(file.name)) for file in listing.files}
    return [listing.files[number].name for number in val], everything | numbered
