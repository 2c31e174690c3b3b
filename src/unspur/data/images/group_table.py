"""groups.csv: which cue each image shows, as a person ticked it on an audit's page."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from unspur.core.files import require_file, user_path
from unspur.data.images.listing import Listing
from unspur.errors import UnspurError, require

COLUMNS = ("filename", "label", "cue")
BY_A_PERSON = "person"  # in the column "checked"; "audit" is an estimate


def read_groups(path: Path | str, *, ticked: bool = False) -> dict[str, str]:
    """The cue of each file name; with ``ticked`` of those alone that a person looked at."""
    require_file(user_path(path))
    try:
        with user_path(path).open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            missing = [column for column in COLUMNS if column not in (table.fieldnames or ())]
            require(not missing, f"{path} has no column '{(missing or [''])[0]}'; download groups.csv again.")
            return {
                str(PurePosixPath(row["filename"] or "")): (row["cue"] or "").removeprefix("'")
                for row in table
                if not ticked or row.get("checked", BY_A_PERSON) == BY_A_PERSON
            }
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnspurError(f"{path} cannot be read as a table ({error}); name the groups.csv of an audit.") from None


def cues_in(part: str, names: Sequence[str], shown: Mapping[str, str]) -> dict[int, str]:
    """The known cues of a split's images, by the image's place in the split; ``names`` are the images' files.

    Audits of a folder name images by their files; audits of a run by split and place, such as train/12.

    >>> cues_in("val", ["cat/1.png", "cat/2.png", "cat/3.png"], {"cat/2.png": "sea", "val/2": "sky", "train/0": "sea"})
    {1: 'sea', 2: 'sky'}
    """
    found = (
        (place, shown.get(str(PurePosixPath(name))) or shown.get(f"{part}/{place}")) for place, name in enumerate(names)
    )
    return {place: cue for place, cue in found if cue}


def hold_out_labelled(
    parts: Mapping[str, Tensor], listing: Listing, path: str
) -> tuple[dict[str, Tensor], list[str], str]:
    """Make the training images that were ticked the validation set: the splits, the cues, and a sentence on it.

    The table also names all images that nobody ticked, with the audit's estimates: these stay to train on.
    """
    names = [listing.files[number].name for number in parts["train"].tolist()]
    cues = cues_in("train", names, read_groups(path, ticked=True))
    require(bool(cues), f"{path} has no tick on any of these training images; tick some, or leave data.groups out.")
    held = torch.zeros(len(parts["train"]), dtype=torch.bool)
    held[list(cues)] = True
    require(not bool(held.all()), f"{path} has a tick on every training image, which leaves none to train on.")
    note = f"{len(cues):,} training images with groups from a table are held out to validate on."
    return {**parts, "train": parts["train"][~held], "val": parts["train"][held]}, list(cues.values()), note
