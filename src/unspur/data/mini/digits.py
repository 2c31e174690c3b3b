"""The embedded digits as images: 12,000 of MNIST's, so that everything runs with no download."""

from __future__ import annotations

from functools import cache
from importlib.resources import files as resources

import torch
from torch import Tensor

from unspur.data.base import Images
from unspur.data.mini.codec import CLASSES, TEST, TRAIN, unpack
from unspur.data.mini.rans import Array


def load_mini() -> tuple[Images, Images]:
    """The embedded digits: 1,000 of each class for training and 200 for testing, classes taking turns."""
    digits = torch.from_numpy(_unpacked().copy()).reshape(CLASSES, TRAIN + TEST, 1, 28, 28)
    train, test = digits.split([TRAIN, TEST], dim=1)
    return _take_turns(train), _take_turns(test)


@cache
def _unpacked() -> Array:
    return unpack((resources("unspur.data") / "mini" / "digits.bin").read_bytes())


def _take_turns(by_class: Tensor) -> Images:
    each = by_class.shape[1]
    return Images(by_class.transpose(0, 1).flatten(0, 1), torch.arange(CLASSES).repeat(each))
