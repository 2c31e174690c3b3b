"""Masks that a set publishes with its images: where the object is. Each is read only when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from unspur.data.images.decode import SquareFit, Unreadable, decode
from unspur.errors import UnspurError


class ForegroundMasks:
    """Masks (n, size, size), True on the object, in the order of a split's images and fitted in the same way."""

    def __init__(self, root: Path, names: Sequence[str], size: int, fit: SquareFit) -> None:
        self._root, self._names, self._size, self._fit = root, names, size, fit

    @property
    def shape(self) -> torch.Size:
        return torch.Size([len(self._names), self._size, self._size])

    @property
    def dtype(self) -> torch.dtype:
        return torch.bool

    def __getitem__(self, index: Tensor, /) -> Tensor:
        masks = torch.zeros(len(index), self._size, self._size, dtype=torch.bool)
        for mask, number in zip(masks, index.tolist(), strict=True):
            mask.copy_(self._read(self._root / self._names[number]))
        return masks

    def subset(self, index: Tensor, /) -> ForegroundMasks:
        return ForegroundMasks(self._root, [self._names[i] for i in index.tolist()], self._size, self._fit)

    def reading(self, order: Sequence[Tensor], /) -> Iterator[Tensor]:
        return (self[index] for index in order)

    def _read(self, path: Path) -> Tensor:
        try:
            return torch.from_numpy(decode(path.read_bytes(), self._size, self._fit)[0] >= 128)
        except (Unreadable, OSError) as problem:
            reason = f"cannot be read ({problem.strerror})" if isinstance(problem, OSError) else str(problem)
            raise UnspurError(f"The mask {path} {reason}; unpack the data set again.") from None
