"""Images decoded each time they are needed, ahead of the training: for sets too large to store decoded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from unspur.data.images.decode import Pixels, SquareFit
from unspur.data.images.workers import Decoded, Decoders, Result, Task
from unspur.errors import UnspurError

AHEAD = 2  # batches decoded while one is trained on
PART = 8  # images handed to a process at once: few, so that a batch is spread over all processes


class ImagesOnDemand:
    """Images by index, straight from their files: a source for a Split that costs no memory and no disk."""

    def __init__(
        self, root: Path, names: Sequence[str], size: int, fit: SquareFit, decoders: Decoders | None = None
    ) -> None:
        self._root, self._names, self._size, self._fit = root, names, size, fit
        self._decoders = decoders or Decoders()

    @property
    def shape(self) -> torch.Size:
        return torch.Size([len(self._names), 3, self._size, self._size])

    @property
    def dtype(self) -> torch.dtype:
        return torch.uint8

    def __getitem__(self, index: Tensor, /) -> Tensor:
        return next(self.reading([index]))

    def subset(self, index: Tensor, /) -> ImagesOnDemand:
        names = [self._names[i] for i in index.tolist()]
        return ImagesOnDemand(self._root, names, self._size, self._fit, self._decoders)

    def reading(self, order: Sequence[Tensor], /) -> Iterator[Tensor]:
        """The images of each index in turn; the next ones are decoded while the caller works."""
        longest = max((len(index) for index in order), default=0)
        tasks = (self._task(part) for index in order for part in index.split(PART))
        results = self._decoders.run(tasks, ahead=AHEAD * -(-longest // PART))
        for index in order:
            parts = [self._images(part, next(results)) for part in index.split(PART)]
            yield torch.from_numpy(np.concatenate(parts))

    def _task(self, index: Tensor) -> Task:
        paths = tuple(os.path.join(self._root, self._names[i]) for i in index.tolist())
        return Task(paths, self._size, self._fit, send=True)

    def _images(self, index: Tensor, results: Sequence[Result]) -> Pixels:
        images = np.empty((len(index), 3, self._size, self._size), np.uint8)
        for image, i, result in zip(images, index.tolist(), results, strict=True):
            if not isinstance(result, Decoded) or result.pixels is None:
                raise UnspurError(
                    f"{self._root / self._names[i]} {result}; it could be decoded when the set was checked, so it has "
                    "changed since: put it back and go on with --resume."
                )
            image[:] = np.frombuffer(result.pixels, np.uint8).reshape(image.shape)
        return images
