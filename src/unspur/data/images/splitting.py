"""Which images are for training, validation and test: as given, or else drawn class by class."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unspur.core.seeds import data_stream
from unspur.data.base import stratified_split
from unspur.data.images.listing import Listing
from unspur.errors import UnspurError, require

NAMES = ("train", "val", "test")


def names_in_order(values: Sequence[str]) -> tuple[str, ...]:
    """The different values, sorted; as numbers if all are whole numbers.

    >>> names_in_order(["10", "-1", "2"]), names_in_order(["b", "10", "a"])
    (('-1', '2', '10'), ('10', 'a', 'b'))
    """
    different = set(values)
    if all(value.removeprefix("-").isdecimal() for value in different):
        return tuple(sorted(different, key=lambda value: (int(value), value)))
    return tuple(sorted(different))


def codes(values: Sequence[str], names: Sequence[str]) -> Tensor:
    """Each value as its place in ``names``."""
    code = {name: number for number, name in enumerate(names)}
    return torch.tensor([code[value] for value in values], dtype=torch.long)


def partition(listing: Listing, y: Tensor, val: float, test: float, seed: int) -> tuple[dict[str, Tensor], list[str]]:
    """Entry numbers of each split, and sentences on what was drawn.

    If no test set is given, it is a share of the training images; if no validation set is given, it is a share of those
    that are then left. Both are drawn class by class with ``seed``.
    """
    given = torch.zeros(len(y), dtype=torch.long) if listing.splits is None else codes(listing.splits, NAMES)
    parts = {name: (given == number).nonzero().squeeze(1) for number, name in enumerate(NAMES)}
    require(len(parts["train"]) > 0, f"No image of {_origin(listing)} is for training; give some the split 'train'.")
    _check_two_classes(listing, y)
    if listing.splits is None:
        _check_sizes(listing, y)
    notes = []
    for name, share in (("test", test), ("val", val)):
        if len(parts[name]) or not share:
            continue
        left, held = _hold_out(y, parts["train"], name, share, seed)
        parts["train"], parts[name] = left, held
        notes.append(f"The {name} set was drawn with seed {seed} ({len(held):,} of {len(left) + len(held):,} images).")
    _check_classes(listing, y, parts)
    for label in (torch.bincount(y[parts["train"]]) == 1).nonzero().flatten().tolist():
        only = int(parts["train"][y[parts["train"]] == label][0])
        notes.append(f"The class '{listing.labels[only]}' has one training image, {listing.place(only)}.")
    return parts, notes


def _hold_out(y: Tensor, pool: Tensor, name: str, share: float, seed: int) -> tuple[Tensor, Tensor]:
    count = round(share * len(pool))
    instead = ", set it to 0 to go without" if name == "val" else ""
    require(
        count > 0,
        f"data.{name}={share} of {len(pool)} images is no whole image, which leaves the {name} set empty; raise "
        f"data.{name}{instead}, or add images.",
    )
    require(
        count < len(pool),
        f"data.{name}={share} of {len(pool)} images leaves the training set empty; lower data.{name} or add images.",
    )
    left, held = stratified_split(y[pool], count, data_stream(seed, f"{name} split"))
    return pool[left], pool[held]


def _check_sizes(listing: Listing, y: Tensor) -> None:
    for label in (torch.bincount(y) == 1).nonzero().flatten().tolist():
        only = int((y == label).nonzero()[0])
        raise UnspurError(
            f"The class '{listing.labels[only]}' has one image, {listing.place(only)}, which cannot be for training "
            "and for test; add images of it, or leave it out."
        )


def _check_classes(listing: Listing, y: Tensor, parts: dict[str, Tensor]) -> None:
    """Every class must be trained on."""
    trained = set(y[parts["train"]].tolist())
    for name in ("val", "test"):
        for number in parts[name].tolist():
            if int(y[number]) not in trained:
                raise UnspurError(
                    f"The label '{listing.labels[number]}' of {listing.place(number)} is in the {name} set only; give "
                    "the training set images of it, or leave it out."
                )


def _check_two_classes(listing: Listing, y: Tensor) -> None:
    if len(y.unique()) < 2:
        raise UnspurError(
            f"All {len(y):,} images of {_origin(listing)} have the label '{listing.labels[0]}'; a classifier needs two "
            "classes, so add images of another one."
        )


def _origin(listing: Listing) -> str:
    return str(listing.table.path if listing.table else listing.root)
