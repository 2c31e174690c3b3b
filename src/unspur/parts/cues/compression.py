"""Compression in blocks of eight pixels, as JPEG leaves it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

QUALITIES = (15, 30, 50, 70, 85)
BLOCK = 8
REMOVED = 30  # the quality to which all images are compressed where blocks must not tell them apart


@dataclass(frozen=True)
class Compression:
    """An image is compressed until its blocks show as much as the donor's, or smoothed across its blocks' edges."""

    family: ClassVar[str] = "compression"

    def measure(self, images: Tensor) -> Tensor:
        """How much larger jumps are between blocks than inside them, across and down, as logs."""
        grey = images.mean(1)
        return torch.stack([_blockiness(grey), _blockiness(grey.transpose(1, 2))], 1)

    def outline(self, images: Tensor) -> Tensor:
        return torch.ones(len(images), *images.shape[2:], dtype=torch.bool)

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        wanted, own = self.measure(donors).mean(1), self.measure(images).mean(1)
        tries = torch.stack([images, *(compressed(images, quality) for quality in QUALITIES)], 1)
        shown = torch.stack([own, *(self.measure(tries[:, i + 1]).mean(1) for i in range(len(QUALITIES)))], 1)
        best = (shown - wanted.unsqueeze(1)).abs().argmin(1)
        chosen = tries[torch.arange(len(images)), best]
        # Only smoothing shows less blocking than the image itself.
        smoother = (wanted < own - 0.1) & (best == 0)
        return torch.where(smoother[:, None, None, None], _deblocked(images), chosen)

    def remove(self, images: Tensor) -> Tensor:
        return compressed(images, REMOVED)


def compressed(images: Tensor, quality: int) -> Tensor:
    """Each image as a JPEG of that quality shows it."""
    results = []
    for image in images:
        pixels = (image.clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy()
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
        with Image.open(buffer) as read:
            results.append(torch.from_numpy(np.asarray(read.convert("RGB")).copy()).permute(2, 0, 1))
    return torch.stack(results).float() / 255


def _blockiness(grey: Tensor) -> Tensor:
    jump = (grey[..., 1:-2] * 3 - grey[..., :-3] - grey[..., 2:-1] * 3 + grey[..., 3:]).abs().mean(1)
    width = jump.shape[1] // BLOCK * BLOCK
    phase = (jump[:, :width].reshape(len(grey), -1, BLOCK).mean(1) + 1e-4).log()
    return phase[:, BLOCK - 2] - phase[:, : BLOCK - 2].mean(1)


def _deblocked(images: Tensor) -> Tensor:
    """Pixels on either side of a block's edge moved half way to their neighbours' mean."""
    smooth = functional.avg_pool2d(functional.pad(images, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    rows, columns = torch.arange(images.shape[2]), torch.arange(images.shape[3])
    edge_row, edge_column = ((place % BLOCK == 0) | (place % BLOCK == BLOCK - 1) for place in (rows, columns))
    edge = edge_row.unsqueeze(1) | edge_column
    return torch.where(edge, (images + smooth) / 2, images)
