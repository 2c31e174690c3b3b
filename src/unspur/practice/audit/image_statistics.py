"""What is measured in a whole image and in each of its cells: numbers in which a shortcut may hide."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from unspur.parts.cues.cells import GRID

BORDER = 32  # a border strip is 1/32 of the image's side
CELL_NUMBERS = 18  # mean, deviation, least, largest, horizontal and vertical change of three channels
EPS = 1e-4
ENOUGH = 4_000  # values are enough for a quantile

_GREY = torch.tensor([0.299, 0.587, 0.114])


def grey(images: Tensor) -> Tensor:
    """Luminance (n, height, width) of images (n, 3, height, width)."""
    return torch.einsum("nchw,c->nhw", images, _GREY.to(images))


def quantiles(values: Tensor, *shares: float) -> Tensor:
    """Quantiles over the last dimension, one entry per share; if there are many values, of some 4,000 evenly spaced."""
    step = values.shape[-1] // ENOUGH | 1  # odd, so that it does not align with the image's columns
    some = values[..., ::step].numpy()
    place = [round(share * (some.shape[-1] - 1)) for share in shares]
    return torch.from_numpy(np.partition(some, sorted(set(place)), axis=-1)[..., place])  # half the time of sorting


def cell_statistics(images: Tensor, grid: int = GRID) -> Tensor:
    """(n, grid, grid, 18): for each cell and channel the mean, deviation, least and largest value, and changes."""
    mean, square = _pooled(images, grid), _pooled(images**2, grid)
    across = functional.pad((images[..., 1:] - images[..., :-1]).abs(), (0, 1, 0, 0), mode="replicate")
    down = functional.pad((images[..., 1:, :] - images[..., :-1, :]).abs(), (0, 0, 0, 1), mode="replicate")
    largest = functional.adaptive_max_pool2d(images, grid)
    least = -functional.adaptive_max_pool2d(-images, grid)
    numbers = [mean, (square - mean**2).clamp_min(0).sqrt(), least, largest, _pooled(across, grid), _pooled(down, grid)]
    return torch.cat(numbers, 1).permute(0, 2, 3, 1)


def border_statistics(images: Tensor) -> Tensor:
    """(n, 4, 18): the same numbers for a thin strip along the top, bottom, left and right edge."""
    side = max(1, images.shape[-1] // BORDER)
    strips = [images[..., :side, :], images[..., -side:, :], images[..., :side], images[..., -side:]]
    upright = [strip if strip.shape[-1] > strip.shape[-2] else strip.transpose(-1, -2) for strip in strips]
    return torch.stack([_strip(strip) for strip in upright], 1)


def _strip(strip: Tensor) -> Tensor:
    flat = strip.flatten(2)
    along = (strip[..., 1:] - strip[..., :-1]).abs().flatten(2)
    ends = quantiles(flat, 0.05, 0.5, 0.95).flatten(1)
    return torch.cat([flat.mean(2), flat.std(2), ends, along.mean(2)], 1)


def coarser(cells: Tensor) -> Tensor:
    """Statistics of a grid with half as many cells each way, from those of the finer one.

    >>> coarser(cell_statistics(torch.rand(2, 3, 32, 32))).shape
    torch.Size([2, 4, 4, 18])
    """
    n, rows, columns, _ = cells.shape
    blocks = cells.reshape(n, rows // 2, 2, columns // 2, 2, 6, 3).permute(0, 1, 3, 5, 6, 2, 4).flatten(-2)
    mean, std, least, largest, across, down = blocks.unbind(3)
    wide = ((std**2 + mean**2).mean(-1) - mean.mean(-1) ** 2).clamp_min(0).sqrt()
    numbers = [mean.mean(-1), wide, least.amin(-1), largest.amax(-1), across.mean(-1), down.mean(-1)]
    return torch.cat(numbers, -1)


def _pooled(x: Tensor, grid: int) -> Tensor:
    return functional.adaptive_avg_pool2d(x, grid)


def colour(images: Tensor) -> Tensor:
    """Colour cast: mean and median of each channel relative to the grey, and saturation."""
    mean = images.mean((2, 3))
    middle = quantiles(images.flatten(2), 0.5).squeeze(2)
    top, low = images.amax(1), images.amin(1)
    saturation = ((top - low) / (top + EPS)).mean((1, 2)).unsqueeze(1)
    cast = (mean + EPS).log() - (mean.mean(1, keepdim=True) + EPS).log()
    return torch.cat(
        [cast, middle - middle.mean(1, keepdim=True), saturation, (top - low).mean((1, 2)).unsqueeze(1)], 1
    )


def brightness(images: Tensor) -> Tensor:
    """Mean and quantiles of the luminance."""
    y = grey(images).flatten(1)
    ends = quantiles(y, 0.1, 0.5, 0.9)
    return torch.cat([y.mean(1, keepdim=True), ends], 1)


def contrast(images: Tensor) -> Tensor:
    """Spread of the luminance."""
    y = grey(images).flatten(1)
    low, high = quantiles(y, 0.05, 0.95).unbind(1)
    return torch.stack([y.std(1), high - low, (y.std(1) + EPS).log()], 1)


SCENE: dict[str, Callable[[Tensor], Tensor]] = {"colour": colour, "brightness": brightness, "contrast": contrast}
