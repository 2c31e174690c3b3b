"""Which value of a shortcut each sample gets: that of its class, except for an exact number of conflicting samples."""

from __future__ import annotations

import torch
from torch import Tensor

from unspur.data.base import stratified_split
from unspur.errors import UnspurError, require


def check_conflict(conflict: float | None, conflict_count: int | None) -> None:
    """Raise an error unless at most one of the two is given and it makes sense."""
    require(
        conflict is None or conflict_count is None,
        f"Give conflict or conflict_count, not both: got conflict={conflict} and conflict_count={conflict_count}.",
    )
    require(
        conflict is None or 0 <= conflict <= 1,
        f"conflict is a share and must be between 0 and 1 but got {conflict}.",
    )
    require(
        conflict_count is None or conflict_count >= 0, f"conflict_count must be at least 0 but got {conflict_count}."
    )


def assign(
    y: Tensor,
    values: int,
    generator: torch.Generator,
    *,
    conflict: float | None = None,
    conflict_count: int | None = None,
    aligned: Tensor | None = None,
) -> Tensor:
    """One of ``values`` for each sample: that of its label, except for an exact number of conflicting samples.

    ``conflict`` is the share of conflicting samples; ``conflict_count`` gives their number instead. They are spread
    over the classes in proportion, as far as whole samples allow. Each gets one of the other values, equally likely.
    ``aligned[label]`` is the value of a label; without it, that is the label itself.

    >>> y = torch.tensor([0, 0, 1, 1])
    >>> assign(y, 2, torch.Generator(), conflict=0.5).eq(y).tolist().count(False)
    2
    """
    check_conflict(conflict, conflict_count)
    if conflict is not None:
        count = round(conflict * len(y))
    elif conflict_count is not None:
        count = conflict_count
    else:
        raise UnspurError("Give conflict, a share, or conflict_count, a number.")
    require(count <= len(y), f"conflict_count must be at most the {len(y)} samples but got {count}.")
    own = y if aligned is None else aligned[y]
    require(bool((own < values).all()), f"A shortcut of {values} values has too few of them for the labels.")
    require(count == 0 or values > 1, "A shortcut with a single value cannot conflict with anything.")
    assigned = own.clone()
    conflicting = torch.arange(len(y)) if count == len(y) else stratified_split(y, count, generator)[1]
    if len(conflicting):
        away = torch.randint(1, values, (len(conflicting),), generator=generator)
        assigned[conflicting] = (own[conflicting] + away) % values
    return assigned


def assign_evenly(y: Tensor, values: int, generator: torch.Generator) -> Tensor:
    """One of ``values`` for each sample, independent of the label: in every class all values equally often (give or
    take one sample)."""
    assigned = torch.empty_like(y)
    for label in y.unique().tolist():
        members = (y == label).nonzero().squeeze(1)
        order = torch.randperm(values, generator=generator)  # which values get the samples that are left over
        spread = order[torch.arange(len(members)) % values]
        assigned[members[torch.randperm(len(members), generator=generator)]] = spread
    return assigned


def assign_like_training(
    part: str,
    y: Tensor,
    values: int,
    generator: torch.Generator,
    *,
    training: int,
    conflict: float | None,
    conflict_count: int | None,
    aligned: Tensor | None = None,
) -> Tensor:
    """Values for a part of a data set that conflict as often as in training.

    ``conflict_count`` is the exact number in "train", of ``training`` samples; other parts then have the same share.
    """
    if conflict_count is not None and part != "train":
        return assign(y, values, generator, conflict=conflict_count / training, aligned=aligned)
    return assign(y, values, generator, conflict=conflict, conflict_count=conflict_count, aligned=aligned)
