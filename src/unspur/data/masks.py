"""What to hide of each sample: stored compactly, and turned into weights for the inputs when a batch is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional


class Mask(Protocol):
    """How much of each pixel (or feature) of each sample is kept."""

    def __len__(self) -> int: ...

    def keep(self, index: Tensor) -> Tensor:
        """Weights in [0, 1] for the samples at ``index``, (n, height, width) or (n, features)."""
        ...

    def subset(self, index: Tensor) -> Mask:
        """The masks of the samples at ``index``."""
        ...

    @property
    def bytes_each(self) -> int:
        """What the mask of one sample costs to keep."""
        ...


@dataclass(frozen=True, eq=False)
class BitMask:
    """A bit for each pixel or feature: hidden or not."""

    bits: Tensor  # (n, pixels / 8) bytes
    shape: tuple[int, ...]  # of one mask: (height, width) or (features,)

    @classmethod
    def of(cls, hidden: Tensor) -> BitMask:
        """Pack ``hidden``, (n, height, width) or (n, features), True where something is hidden."""
        flat = hidden.flatten(1)
        flat = functional.pad(flat, (0, -flat.shape[1] % 8)).reshape(len(flat), -1, 8)
        bits = (flat.to(torch.uint8) << torch.arange(8, dtype=torch.uint8)).sum(-1, dtype=torch.uint8)
        return cls(bits, tuple(hidden.shape[1:]))

    def __len__(self) -> int:
        return len(self.bits)

    def keep(self, index: Tensor) -> Tensor:
        bits = self.bits[index]
        flat = (bits.unsqueeze(-1) >> torch.arange(8, dtype=torch.uint8)).bitwise_and(1).flatten(1)
        return 1 - flat[:, : torch.Size(self.shape).numel()].reshape(len(bits), *self.shape).float()

    def subset(self, index: Tensor) -> BitMask:
        return BitMask(self.bits[index], self.shape)

    @property
    def bytes_each(self) -> int:
        return self.bits.shape[1]


@dataclass(frozen=True, eq=False)
class MapMask:
    """A coarse map of bytes and a level for each sample; where the smoothly up-sampled map exceeds it is hidden."""

    maps: Tensor  # (n, map height, map width) or (n, features) bytes
    level: Tensor  # (n,) floats in the bytes' units; infinity hides nothing
    size: tuple[int, ...]  # of one mask: (height, width) or (features,)
    covered: tuple[int, ...] | None = None  # of it, what the map lies over, in the middle; None: all

    def __len__(self) -> int:
        return len(self.maps)

    def keep(self, index: Tensor) -> Tensor:
        fine = upsampled(self.maps[index], self.size, self.covered)
        return (fine <= self.level[index].reshape(-1, *[1] * len(self.size))).float()

    def subset(self, index: Tensor) -> MapMask:
        return MapMask(self.maps[index], self.level[index], self.size, self.covered)

    @property
    def bytes_each(self) -> int:
        return self.maps[0].numel() + self.level.element_size()


@dataclass(frozen=True, eq=False)
class SoftMask:
    """A weight for each cell of a coarse map, a byte each, up-sampled smoothly."""

    weights: Tensor  # (n, map height, map width) or (n, features) bytes; 255 keeps a cell whole
    size: tuple[int, ...]  # of one mask: (height, width) or (features,)

    def __len__(self) -> int:
        return len(self.weights)

    def keep(self, index: Tensor) -> Tensor:
        return upsampled(self.weights[index], self.size) / 255

    def subset(self, index: Tensor) -> SoftMask:
        return SoftMask(self.weights[index], self.size)

    @property
    def bytes_each(self) -> int:
        return self.weights[0].numel()


@dataclass(frozen=True, eq=False)
class GrownMask:
    """What another mask hides, and everything within ``by`` pixels of it."""

    mask: Mask
    by: int

    def __len__(self) -> int:
        return len(self.mask)

    def keep(self, index: Tensor) -> Tensor:
        return 1 - grown(1 - self.mask.keep(index), self.by)

    def subset(self, index: Tensor) -> GrownMask:
        return GrownMask(self.mask.subset(index), self.by)

    @property
    def bytes_each(self) -> int:
        return self.mask.bytes_each


@dataclass(frozen=True, eq=False)
class BothMasks:
    """What either of two masks hides."""

    first: Mask
    second: Mask

    def __len__(self) -> int:
        return len(self.first)

    def keep(self, index: Tensor) -> Tensor:
        return self.first.keep(index) * self.second.keep(index)

    def subset(self, index: Tensor) -> BothMasks:
        return BothMasks(self.first.subset(index), self.second.subset(index))

    @property
    def bytes_each(self) -> int:
        return self.first.bytes_each + self.second.bytes_each


def upsampled(maps: Tensor, size: tuple[int, ...], covered: tuple[int, ...] | None = None) -> Tensor:
    """Maps (n, h, w) up-sampled bilinearly to floats of ``size``; maps that have it, such as vectors, stay as they are.

    Corners are not aligned: a map's cell stands for the part of the image that it covers, edges included. A map may
    cover only the middle of an image, ``covered`` pixels high and wide; outside, its outermost cells are repeated.
    Rows and columns are enlarged by one matrix product each, which is several times faster than torch's own function.
    """
    values = maps.float()
    if tuple(maps.shape[1:]) == tuple(size):
        return values
    lengths = zip(maps.shape[1:], size, covered or size, strict=True)
    rows, columns = (_enlarging(old, new, within) for old, new, within in lengths)
    return rows @ (values @ columns.T)


@cache
def _enlarging(old: int, new: int, within: int) -> Tensor:
    """The matrix (new, old) that enlarges a line linearly to ``within`` places in the middle of ``new``."""
    line = functional.interpolate(torch.eye(old).unsqueeze(0), size=within, mode="linear", align_corners=False)
    before = (new - within) // 2
    return functional.pad(line, (before, new - within - before), mode="replicate")[0].T


def grown(hidden: Tensor, by: int) -> Tensor:
    """``hidden`` (n, height, width), 1 where something is hidden, grown by ``by`` pixels, corners included."""
    return functional.max_pool2d(hidden.unsqueeze(1), 2 * by + 1, stride=1, padding=by).squeeze(1) if by else hidden


def hidden_shares(mask: Mask, part: int = 2000) -> Tensor:
    """The share of each sample that is hidden, a few samples at a time so that memory stays flat."""
    return torch.cat([1 - mask.keep(index).flatten(1).mean(1) for index in torch.arange(len(mask)).split(part)])
