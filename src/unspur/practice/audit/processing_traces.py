"""Traces that processing leaves in pixels, whatever they show; measured on images that were not resized."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from unspur.practice.audit.image_statistics import EPS, grey, quantiles

FLAT_PATCH = 8  # side of the patches; the calmest patch shows the noise
VANISHED, LARGEST_STEP = (
    0.75,
    60.0,
)  # cosine coefficients, in steps of a byte: rounding pixels leaves less than the first
SPECK = 0.1  # share of the range of values by which a speck differs from all its neighbours


def tone(images: Tensor) -> Tensor:
    """Where each channel's values end, and which values are missing: traces of a tone curve, not of a scene."""
    flat = images.flatten(2)
    ends = quantiles(flat, 0.002, 0.998).flatten(1)
    clipped = torch.cat([(flat < 0.5 / 255).float().mean(2), (flat > 254.5 / 255).float().mean(2)], 1)
    return torch.cat([ends, (clipped + 1e-3).log(), _comb(images)], 1)


def _comb(images: Tensor) -> Tensor:
    """How uneven neighbouring values of a channel's histogram are: scaling bytes leaves gaps and peaks."""
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
    return torch.cat([(level + EPS).log(), (calm + EPS).log(), agree, _specks(images)], 1)


def _specks(images: Tensor) -> Tensor:
    """The log share of pixels that are far lighter, or far darker, than all their eight neighbours."""
    y = grey(images)
    shares = []
    for sign in (1, -1):
        around = _around(sign * y)
        shares.append((sign * y[:, 1:-1, 1:-1] - around > SPECK).float().mean((1, 2)))
    return (torch.stack(shares, 1) + 1e-4).log()


def _around(y: Tensor) -> Tensor:
    """The largest of each inner pixel's eight neighbours."""
    row = torch.maximum(y[..., :-2], y[..., 2:])
    three = torch.maximum(row, y[..., 1:-1])
    return torch.maximum(torch.maximum(three[:, :-2], three[:, 2:]), row[:, 1:-1])


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
    """Traces of blocks of eight pixels: jumps between blocks against jumps inside, zeroed coefficients, steps."""
    y, chroma = grey(images), images[:, 0] - images[:, 2]
    sizes = _coefficients(y)
    numbers = [_blocks(y), _blocks(y.transpose(1, 2)), _cut(y, sizes), _steps(sizes)]
    numbers += [_blocks(chroma), _blocks(chroma.transpose(1, 2)), _cut(chroma, _coefficients(chroma))]
    return torch.cat(numbers, 1)


def _blocks(y: Tensor) -> Tensor:
    """The log jump at the borders of blocks, less the mean over a block's eight places; then largest less median."""
    jump = (y[..., 1:-2] * 3 - y[..., :-3] - y[..., 2:-1] * 3 + y[..., 3:]).abs().mean(1)
    width = jump.shape[1] // 8 * 8
    phase = (jump[:, :width].reshape(len(y), -1, 8).mean(1) + EPS).log()
    phase = phase - phase.mean(1, keepdim=True)
    at_border = phase[:, 6:7]  # between pixels 7 and 8: jump i lies between i + 1 and i + 2
    return torch.cat([at_border, phase.amax(1, keepdim=True) - phase.median(1, keepdim=True).values], 1)


def _cut(y: Tensor, sizes: Tensor) -> Tensor:
    """How many more cosine coefficients vanish in blocks that start at 0 (``sizes``) than in blocks that start at 4."""
    return (_vanishing(sizes) - _vanishing(_coefficients(y[:, 4:-4, 4:-4]))).unsqueeze(1)


def _vanishing(sizes: Tensor) -> Tensor:
    return (sizes[..., 2:, 2:] < 0.5).float().mean((1, 2, 3))


def _steps(sizes: Tensor) -> Tensor:
    """Logs of the smallest coefficients that do not vanish, in three bands: quantised values begin at their step."""
    band = torch.arange(8).unsqueeze(1) + torch.arange(8)
    numbers = []
    for low, high in ((1, 2), (3, 4), (5, 6)):
        values = sizes[..., (band >= low) & (band <= high)].flatten(1)
        count = (values >= VANISHED).sum(1)
        ordered = torch.where(values >= VANISHED, values, LARGEST_STEP).clamp(max=LARGEST_STEP).sort(1).values
        place = (count.unsqueeze(1) * torch.tensor([0.0, 0.04, 0.1])).long().clamp(max=values.shape[1] - 1)
        numbers.append(ordered.gather(1, place).log())
    return torch.cat(numbers, 1)


def _coefficients(y: Tensor) -> Tensor:
    """Magnitudes (n, blocks, 8, 8) of the cosine coefficients of blocks, in steps of a byte."""
    rows, columns = y.shape[1] // 8, y.shape[2] // 8
    blocks = y[:, : rows * 8, : columns * 8].reshape(len(y), rows, 8, columns, 8).permute(0, 1, 3, 2, 4)
    basis = _cosines()
    return (basis @ (blocks.flatten(1, 2) * 255) @ basis.T).abs()


def _cosines() -> Tensor:
    place = torch.arange(8.0)
    basis = torch.cos(math.pi * (2 * place + 1) * place.unsqueeze(1) / 16) / 2
    basis[0] /= math.sqrt(2)
    return basis


def decoded(images: Tensor) -> Tensor:
    """The share of pixels whose colour a JPEG file can hold: all pixels, if a JPEG was decoded and not changed since.

    About a quarter of all colours are some whole Y, Cb, Cr. Pixels at the end of a channel's range are left out, since
    they may have been clipped.
    """
    level = (images * 255).round().long()
    inner = ((level > 0) & (level < 255)).all(1)
    place = (level[:, 0] * 256 + level[:, 1]) * 256 + level[:, 2]
    held = _jpeg_colours()[place] & inner
    share = (held.sum((1, 2)) + 1) / (inner.sum((1, 2)) + 1)
    return torch.stack([share, (1.001 - share).log()], 1)


@cache
def _jpeg_colours() -> Tensor:
    """(256 ** 3,) booleans: colours (r, g, b) that decoding some whole Y, Cb, Cr gives (JFIF, rounded like libjpeg)."""
    found = torch.zeros(256, 256, 256, dtype=torch.bool)
    shift = torch.arange(-128, 128)
    red, blue = (1.402 * shift).add(0.5).floor().long(), (1.772 * shift).add(0.5).floor().long()
    green = (-0.714136286 * shift.unsqueeze(1) - 0.344136286 * shift + 0.5).floor().long()  # (Cr, Cb)
    for y in range(256):
        colour = [(y + red).unsqueeze(1).expand(256, 256), y + green, (y + blue).expand(256, 256)]
        possible = torch.stack([(each >= 0) & (each <= 255) for each in colour]).all(0)
        found[tuple(each[possible] for each in colour)] = True
    return found.flatten()


def parity(images: Tensor) -> Tensor:
    """Changes at even against odd positions, and how many neighbours are equal: traces of enlarging and of palettes."""
    y = grey(images)
    numbers = []
    for change in ((y[..., 1:] - y[..., :-1]).abs().mean(1), (y[:, 1:] - y[:, :-1]).abs().mean(2)):
        even, odd = change[:, ::2].mean(1), change[:, 1::2].mean(1)
        numbers.append(((even + EPS) / (odd + EPS)).log())
    equal = ((images[..., 1:] - images[..., :-1]).abs() < 0.5 / 255).all(1).float().mean((1, 2))
    return torch.stack([*numbers, *[number.abs() for number in numbers], equal], 1)


TRACES: dict[str, Callable[[Tensor], Tensor]] = {
    "tone": tone,
    "noise": noise,
    "sharpness": sharpness,
    "compression": compression,
    "parity": parity,
    "decoded": decoded,
}
