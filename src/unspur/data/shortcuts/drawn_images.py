"""Images of a source with something drawn into them as they are read: nothing is copied and nothing is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from unspur.data.base import Unread

Draw = Callable[[Tensor, Tensor], Tensor]  # from images (n, 3, height, width) and their numbers to new images


class DrawnImages:
    """What ``draw`` makes of each image of ``source``; a drawing may depend on the image and on its number."""

    def __init__(self, source: Unread, draw: Draw, numbers: Tensor | None = None) -> None:
        self._source, self._draw = source, draw
        self._numbers = torch.arange(source.shape[0]) if numbers is None else numbers

    @property
    def shape(self) -> torch.Size:
        return self._source.shape

    @property
    def dtype(self) -> torch.dtype:
        return self._source.dtype

    def __getitem__(self, index: Tensor, /) -> Tensor:
        return self._draw(self._source[index], self._numbers[index])

    def subset(self, index: Tensor, /) -> DrawnImages:
        source = self._source.subset(index)
        assert isinstance(source, Unread)
        return DrawnImages(source, self._draw, self._numbers[index])

    def reading(self, order: Sequence[Tensor], /) -> Iterator[Tensor]:
        for index, images in zip(order, self._source.reading(order), strict=True):
            yield self._draw(images, self._numbers[index])
