"""What is measured of an image as a whole and of each of its cells: numbers that a shortcut may hide in."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

GRID = 8  # cells each way of the leak map
BORDER = 32  # a border strip is this part of the image's side
CELL_NUMBERS = 18  # mean, deviation, least, largest, horizontal and vertical change of three channels
FLAT_PATCH = 8  # pixels each side of the patches whose calmest shows the noise
EPS = 1e-4
ENOUGH = 4_000  # values that a quantile is taken of

_GREY = torch.tensor([0.299, 0.587, 0.114])


def grey(images: Tensor) -> Tensor:
    """Luminance (n, height, width) of images (n, 3, height, width)."""
    return torch.einsum("nchw,c->nhw", images, _GREY.to(images))


def quantiles(values: Tensor, *shares: float) -> Tensor:
    """Quantiles over the last dimension, which becomes one entry a share; of many values some 4,000, evenly taken."""
    step = values.shape[-1] // ENOUGH | 1  # odd, so that it does not fall in step with the image's columns
    found = values[..., ::step].sort(-1).values
    place = [round(share * (found.shape[-1] - 1)) for share in shares]
    return found[..., place]


def cell_statistics(images: Tensor, grid: int = GRID) -> Tensor:
    """(n, grid, grid, 18): of each cell and channel the mean, deviation, least and largest value, and changes."""
    mean, square = _pooled(images, grid), _pooled(images**2, grid)
    across = functional.pad((images[..., 1:] - images[..., :-1]).abs(), (0, 1, 0, 0), mode="replicate")
    down = functional.pad((images[..., 1:, :] - images[..., :-1, :]).abs(), (0, 0, 0, 1), mode="replicate")
    largest = functional.adaptive_max_pool2d(images, grid)
    least = -functional.adaptive_max_pool2d(-images, grid)
    numbers = [mean, (square - mean**2).clamp_min(0).sqrt(), least, largest, _pooled(across, grid), _pooled(down, grid)]
    return torch.cat(numbers, 1).permute(0, 2, 3, 1)


def border_statistics(images: Tensor) -> Tensor:
    """(n, 4, 18): the same numbers of a thin strip along the top, bottom, left and right edge."""
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


def tone(images: Tensor) -> Tensor:
    """Where the values of each channel end and which are left out: traces of a tone curve, not of a scene."""
    flat = images.flatten(2)
    ends = quantiles(flat, 0.002, 0.998).flatten(1)
    clipped = torch.cat([(flat < 0.5 / 255).float().mean(2), (flat > 254.5 / 255).float().mean(2)], 1)
    return torch.cat([ends, (clipped + 1e-3).log(), _comb(images)], 1)


def _comb(images: Tensor) -> Tensor:
    """How uneven neighbouring values of a channel's histogram are: scaling bytes leaves gaps and doubles."""
    levels = (images * 255).round().long().clamp(0, 255).flatten(2)
    n, channels = levels.shape[:2]
    place = levels + 256 * torch.arange(n * channels).reshape(n, channels, 1)
    histogram = torch.bincount(place.flatten(), minlength=n * channels * 256).reshape(n, channels, 256).float()
    inner = histogram[..., 1:-1]
    around = (histogram[..., :-2] + histogram[..., 2:]) / 2
    uneven = (inner - around).abs().sum(2) / inner.sum(2).clamp_min(1)
    return torch.cat([uneven, (histogram > 0).float().mean(2)], 1)


def noise(images: Tensor) -> Tensor:
    """The diagonal detail of 2 x 2 pixels: its level, its level where the image is calm, and whether channels agree."""
    detail = (
        images[..., :-1:2, :-1:2] - images[..., :-1:2, 1::2] - images[..., 1::2, :-1:2] + images[..., 1::2, 1::2]
    ) / 2
    size = detail.abs().flatten(2)
    level = quantiles(size, 0.5).squeeze(2)
    patches = functional.avg_pool2d(detail**2, FLAT_PATCH // 2).flatten(2)
    calm = quantiles(patches, 0.1).squeeze(2).sqrt()
    centred = detail.flatten(2)
    centred = centred / (centred.norm(dim=2, keepdim=True) + EPS)
    agree = torch.stack([(centred[:, a] * centred[:, b]).sum(1) for a, b in ((0, 1), (1, 2), (0, 2))], 1)
    return torch.cat([(level + EPS).log(), (calm + EPS).log(), agree], 1)


def sharpness(images: Tensor) -> Tensor:
    """How steep the steepest edges are at neighbouring scales, and how fast the spectrum falls off."""
    y = grey(images)
    steps = [(y[..., lag:] - y[..., :-lag]).abs().flatten(1) for lag in (1, 2, 4)]
    rises = [(y[:, lag:] - y[:, :-lag]).abs().flatten(1) for lag in (1, 2, 4)]
    strong = [quantiles(values, 0.97).squeeze(1) + EPS for values in (*steps, *rises)]
    edges = [(strong[0] / strong[1]).log(), (strong[1] / strong[2]).log(),
             (strong[3] / strong[4]).log(), (strong[4] / strong[5]).log()]  # fmt: skip
    laplace = (4 * y[:, 1:-1, 1:-1] - y[:, :-2, 1:-1] - y[:, 2:, 1:-1] - y[:, 1:-1, :-2] - y[:, 1:-1, 2:]).abs()
    curved = quantiles(laplace.flatten(1), 0.97).squeeze(1) + EPS
    return torch.cat([torch.stack([*edges, (curved / strong[0]).log()], 1), spectrum(y)], 1)


def spectrum(y: Tensor, bands: int = 6) -> Tensor:
    """Differences of the log energy of neighbouring radial bands of the spectrum."""
    size = y.shape[-1]
    window = torch.hann_window(size, periodic=False)
    power = torch.fft.rfft2((y - y.mean((1, 2), keepdim=True)) * window * window.unsqueeze(1)).abs() ** 2
    radius = (torch.fft.fftfreq(y.shape[-2]).unsqueeze(1) ** 2 + torch.fft.rfftfreq(size) ** 2).sqrt()
    band = (radius / 0.5 * bands).long().clamp(max=bands - 1)
    energy = torch.stack([power[:, band == number].mean(1) for number in range(bands)], 1)
    logs = (energy + 1e-6).log()
    return logs[:, 1:] - logs[:, :-1]


def compression(images: Tensor) -> Tensor:
    """Traces of blocks of eight pixels: jumps between blocks against jumps within, and coefficients that were cut."""
    y = grey(images)
    numbers = [_blocks(y), _blocks(y.transpose(1, 2)), _cut(y)]
    chroma = images[:, 0] - images[:, 2]
    return torch.cat([*numbers, _blocks(chroma), _blocks(chroma.transpose(1, 2)), _cut(chroma)], 1)


def _blocks(y: Tensor) -> Tensor:
    """The log of the jump at each of the eight places in a block less that of the others' mean; then the largest."""
    jump = (y[..., 1:-2] * 3 - y[..., :-3] - y[..., 2:-1] * 3 + y[..., 3:]).abs().mean(1)
    width = jump.shape[1] // 8 * 8
    phase = (jump[:, :width].reshape(len(y), -1, 8).mean(1) + EPS).log()
    phase = phase - phase.mean(1, keepdim=True)
    at_border = phase[:, 6:7]  # between pixels 7 and 8: jump i lies between i + 1 and i + 2
    return torch.cat([at_border, phase.amax(1, keepdim=True) - phase.median(1, keepdim=True).values], 1)


def _cut(y: Tensor) -> Tensor:
    """How many more cosine coefficients vanish in blocks that start at 0 than in blocks that start at 4."""
    return (_vanishing(y) - _vanishing(y[:, 4:-4, 4:-4])).unsqueeze(1)


def _vanishing(y: Tensor) -> Tensor:
    rows, columns = y.shape[1] // 8, y.shape[2] // 8
    blocks = y[:, : rows * 8, : columns * 8].reshape(len(y), rows, 8, columns, 8).permute(0, 1, 3, 2, 4)
    basis = _cosines()
    coefficients = basis @ (blocks * 255) @ basis.T
    return (coefficients[..., 2:, 2:].abs() < 0.5).float().mean((1, 2, 3, 4))


def _cosines() -> Tensor:
    place = torch.arange(8.0)
    basis = torch.cos(math.pi * (2 * place + 1) * place.unsqueeze(1) / 16) / 2
    basis[0] /= math.sqrt(2)
    return basis


def parity(images: Tensor) -> Tensor:
    """Changes at even against odd places, and how many neighbours are equal: traces of enlarging and of palettes."""
    y = grey(images)
    numbers = []
    for change in ((y[..., 1:] - y[..., :-1]).abs().mean(1), (y[:, 1:] - y[:, :-1]).abs().mean(2)):
        even, odd = change[:, ::2].mean(1), change[:, 1::2].mean(1)
        numbers.append(((even + EPS) / (odd + EPS)).log())
    equal = ((images[..., 1:] - images[..., :-1]).abs() < 0.5 / 255).all(1).float().mean((1, 2))
    return torch.stack([*numbers, *[number.abs() for number in numbers], equal], 1)


SCENE: dict[str, Callable[[Tensor], Tensor]] = {"colour": colour, "brightness": brightness, "contrast": contrast}
TRACES: dict[str, Callable[[Tensor], Tensor]] = {
    "tone": tone,
    "noise": noise,
    "sharpness": sharpness,
    "compression": compression,
    "parity": parity,
}
