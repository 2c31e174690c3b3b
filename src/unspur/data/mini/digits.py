"""The embedded digits as images: 12,000 of MNIST's, so that everything runs with no download."""

from __future__ import annotations

import lzma
from functools import cache
from importlib.resources import files as resources

import torch
from torch import Tensor

from unspur.data.base import Images
from unspur.errors import UnspurError

FILE = "digits.xz"  # class by class, those for training first; made by scripts/make_mini.py
CLASSES, TRAIN, TEST = 10, 1000, 200


def load_mini() -> tuple[Images, Images]:
    """The embedded digits: 1,000 of each class for training and 200 for testing, classes taking turns."""
    digits = _stored().clone().reshape(CLASSES, TRAIN + TEST, 1, 28, 28)
    train, test = digits.split([TRAIN, TEST], dim=1)
    return _take_turns(train), _take_turns(test)


@cache
def _stored() -> Tensor:
    return unpack((resources("unspur.data") / "mini" / FILE).read_bytes())


def unpack(packed: bytes) -> Tensor:
    """All pixels, from the file's content; its own checksum tells whether it is whole."""
    try:
        return torch.frombuffer(bytearray(lzma.decompress(packed)), dtype=torch.uint8)
    except lzma.LZMAError as error:
        raise UnspurError(f"The embedded digits are damaged ({error}); install unspur again.") from None


def _take_turns(by_class: Tensor) -> Images:
    each = by_class.shape[1]
    return Images(by_class.transpose(0, 1).flatten(0, 1), torch.arange(CLASSES).repeat(each))
