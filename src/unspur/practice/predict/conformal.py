"""Sets of labels that contain the right one for a share of the images: split conformal prediction.

A label is in the set if its probability reaches a floor (Sadinle, Lei and Wasserman, 2019: least ambiguous sets). With
the floor at the ceil((n + 1) share)-th largest probability of the right label among n validation images, the set of a
new image like them contains its right label with a probability of at least the share, whatever the model and however
small n (Vovk, Gammerman and Shafer, 2005). Probabilities are taken before any temperature: the temperature was fitted
to the right labels of the same images, so with it new images would not be like them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from torch import Tensor

from unspur.errors import require

SHARES = tuple(step / 100 for step in range(1, 100))  # whose floors are stored with an exported model
ALL_LABELS = 0.0  # the floor that every label reaches


class Known(NamedTuple):
    """Validation images of one kind: the probability of each label, and which is right."""

    images: str  # which
    probability: Tensor  # (n, classes)
    y: Tensor


class ExpectedSetsJSON(TypedDict):
    """What to expect of sets of images like those of one validation set."""

    images: str
    n: int
    coverage: float  # the share of sets that hold the right label
    size: float  # labels in a set, on average


class SetsJSON(TypedDict):
    """Part of `abstention.json` of an exported model."""

    floors: list[float]  # for each of SHARES
    expected: list[list[ExpectedSetsJSON]]  # for the same


def require_share(share: float) -> None:
    """Raise an error for a number that is no share, or not a stored one: being right on all images takes all labels."""
    require(
        0 < share <= SHARES[-1],
        f"--conformal is a share of images above 0 and up to {SHARES[-1]:g}, such as 0.9, but got {share:g}.",
    )


def fewest(share: float) -> int:
    """The fewest validation images with which a set can leave any label out: the least n with (n + 1) share <= n.

    >>> fewest(0.9), fewest(0.99), fewest(0.5)
    (9, 99, 1)
    """
    return math.ceil(round(share / (1 - share), 6))


def require_enough(n: int, share: float) -> None:
    """Raise an error if ``n`` images are too few for ``share``."""
    require(
        n >= fewest(share),
        f"The validation set is too small for --conformal {share:g}: it has {n} images and needs at least "
        f"{fewest(share)}, or every set holds all labels. Use more validation data or a lower share.",
    )


def floor_for(right: Tensor, share: float) -> float:
    """The least probability of a label in a set, from the probabilities of each image's ``right`` label.

    >>> import torch
    >>> floor_for(torch.tensor([0.5, 0.75, 0.25]), 0.5)  # the second largest of three: ceil(4 x 0.5)
    0.5
    >>> floor_for(torch.tensor([0.5, 0.75, 0.25]), 0.8)  # ceil(4 x 0.8) is the fourth of three
    0.0
    """
    rank = math.ceil(round((len(right) + 1) * share, 6))
    return float(right.sort(descending=True).values[rank - 1]) if rank <= len(right) else ALL_LABELS


def in_set(probability: Tensor, floor: float) -> Tensor:
    """Which labels are in the set of each image, (n, classes): the likeliest always is, which only adds to the share.

    >>> import torch
    >>> in_set(torch.tensor([[0.6, 0.3, 0.1], [0.4, 0.35, 0.25]]), 0.3)
    tensor([[ True,  True, False],
            [ True,  True, False]])
    """
    return (probability >= floor).scatter(1, probability.argmax(1, keepdim=True), True)


def sets_of(judged: Sequence[Known], chosen: Sequence[Known]) -> SetsJSON:
    """Floors for all shares that hold for each kind of image that is ``chosen``, and what to expect of all kinds."""
    right = [_right(each) for each in chosen]
    floors = [min(floor_for(each, share) for each in right) for share in SHARES]
    return {"floors": floors, "expected": [[_expected(each, floor) for each in judged] for floor in floors]}


def _right(known: Known) -> Tensor:
    return known.probability.gather(1, known.y[:, None]).squeeze(1)


def _expected(known: Known, floor: float) -> ExpectedSetsJSON:
    labels = in_set(known.probability, floor)
    held = labels.gather(1, known.y[:, None])
    return {
        "images": known.images,
        "n": len(known.y),
        "coverage": round(float(held.double().mean()), 4),
        "size": round(float(labels.sum(1).double().mean()), 4),
    }
