"""Ten corruptions of CIFAR-10-C (Hendrycks and Dietterich, arXiv:1903.12261) at severity 5, on whole batches.

The constants are those of CIFAR-10-C, whose images have 32 pixels per side. Lengths in pixels grow with the side, so a
larger image is blurred and bent equally strongly. The published frost lays photographs of frost over an image; ours is
a generated texture in the same proportion, so figures for frost are comparable in kind, not to the last digit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from unspur.errors import require, unknown

SIDE = 32  # of the images that the constants were chosen for
CHUNK = 1024  # images at once; part of what a seed means


def corrupt(images: Tensor, name: str, generator: torch.Generator) -> Tensor:
    """``images``, bytes (n, 3, height, width), with the corruption ``name``; equal generators give equal bytes."""
    if name not in CORRUPTIONS:
        raise unknown("corruption", name, CORRUPTIONS)
    require(
        images.dtype == torch.uint8 and images.dim() == 4 and images.shape[1] == 3,
        f"A corruption needs RGB images as bytes (n, 3, height, width), but got {tuple(images.shape)} {images.dtype}.",
    )
    apply = CORRUPTIONS[name]
    chunks = [apply(chunk.float(), generator) for chunk in images.split(CHUNK)] if len(images) else [images.float()]
    # Truncated like the published bytes; the 1e-3 saves a whole number that float32 left slightly too small.
    return torch.cat([(chunk + 1e-3).clamp(0, 255).to(torch.uint8) for chunk in chunks])


def _brightness(x: Tensor, generator: torch.Generator) -> Tensor:
    """Value + 0.3 in HSV. Hue and saturation stay, so all three channels grow by the same factor."""
    value = x.amax(1, keepdim=True)
    brighter = (value + 0.3 * 255).clamp(max=255)
    return torch.where(value > 0, x * brighter / value, brighter)


def _saturate(x: Tensor, generator: torch.Generator) -> Tensor:
    """Saturation 2.5 s + 0.2 in HSV. Grey has hue 0, so grey pixels turn reddish, as in CIFAR-10-C."""
    value = x.amax(1, keepdim=True)
    range_ = value - x.amin(1, keepdim=True)
    saturation = (2.5 * range_ / value.clamp(min=1) + 0.2).clamp(max=1)
    red = x.new_tensor([0.0, 1.0, 1.0]).reshape(1, 3, 1, 1)  # how far each channel of pure red lies below its value
    below = torch.where(range_ > 0, (value - x) / range_, red)
    return value * (1 - saturation * below)


def _contrast(x: Tensor, generator: torch.Generator) -> Tensor:
    """Each channel drawn towards its mean over the image, to 0.15 of the distance."""
    mean = x.mean((2, 3), keepdim=True)
    return mean + 0.15 * (x - mean)


def _gaussian_noise(x: Tensor, generator: torch.Generator) -> Tensor:
    return x + 0.1 * 255 * torch.randn(x.shape, generator=generator)


def _impulse_noise(x: Tensor, generator: torch.Generator) -> Tensor:
    """7 % of all channel values become 0 or 255, with equal chances."""
    draw = torch.rand(x.shape, generator=generator)
    return torch.where(draw < 0.035, 0.0, torch.where(draw < 0.07, 255.0, x))


def _gaussian_blur(x: Tensor, generator: torch.Generator) -> Tensor:
    return _gaussian(x, 1.0 * _scale(x), truncate=4, border=_nearest)


def _defocus_blur(x: Tensor, generator: torch.Generator) -> Tensor:
    """The mean over a disk of radius 1.5. (The published anti-aliasing has weights of e^-50, so it is left out.)"""
    radius = 1.5 * _scale(x)
    reach = int(radius)
    offset = torch.arange(-reach, reach + 1)
    disk = (offset[:, None] ** 2 + offset**2 <= radius**2).float()
    padded = _pad(x, reach, _mirrored)
    flat = padded.flatten(0, 1).unsqueeze(1)
    return functional.conv2d(flat, (disk / disk.sum())[None, None]).reshape(x.shape)


def _frost(x: Tensor, generator: torch.Generator) -> Tensor:
    """0.75 of the image and 0.45 of a piece of frost, a piece for each image."""
    height, width = x.shape[2:]
    texture = frost_texture(6 * max(height, width))
    room = len(texture[0]) - torch.tensor([height, width])
    corner = (torch.rand(len(x), 2, generator=generator) * (room + 1)).long()
    rows = corner[:, 0, None, None] + torch.arange(height)[:, None]
    columns = corner[:, 1, None, None] + torch.arange(width)
    return 0.75 * x + 0.45 * texture[:, rows, columns].transpose(0, 1)


def _elastic_transform(x: Tensor, generator: torch.Generator) -> Tensor:
    """A random affine map that moves three points by up to 0.03 sides, then smooth random shifts of 0.1 sides."""
    n, _, height, width = x.shape
    side = min(height, width)
    row, column = torch.meshgrid(torch.arange(height).float(), torch.arange(width).float(), indexing="ij")
    centre, arm = torch.tensor([width // 2, height // 2]), side // 3
    before = (centre + arm * torch.tensor([[1, 1], [1, -1], [-1, -1]])).float()
    after = before + 0.03 * side * (2 * torch.rand(n, 3, 2, generator=generator) - 1)
    # before = [after 1] @ inverse: where each pixel of the result comes from.
    inverse = torch.linalg.solve(functional.pad(after, (0, 1), value=1.0), before.expand(n, 3, 2))
    here = torch.stack([column, row, torch.ones_like(row)], dim=-1)
    bent = _sample(x, (here.reshape(1, -1, 3) @ inverse).reshape(n, height, width, 2), "pixel")
    shift = 2 * torch.rand(n, 2, height, width, generator=generator) - 1
    shift = 0.1 * side * _gaussian(shift, 0.03 * side, truncate=3, border=_doubled)
    return _sample(bent, here[..., :2] + shift.permute(0, 2, 3, 1), "edge")


def _pixelate(x: Tensor, generator: torch.Generator) -> Tensor:
    """Down to 0.65 of the side and up again, with box filters."""
    height, width = x.shape[2:]
    few_rows, few_columns = int(0.65 * height), int(0.65 * width)
    small = _resize(x, _box(height, few_rows), _box(width, few_columns))
    return _resize(small, _box(few_rows, height), _box(few_columns, width))


CORRUPTIONS: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {  # in the order of DCWP's appendix E.1
    "brightness": _brightness,
    "contrast": _contrast,
    "gaussian_noise": _gaussian_noise,
    "frost": _frost,
    "elastic_transform": _elastic_transform,
    "gaussian_blur": _gaussian_blur,
    "defocus_blur": _defocus_blur,
    "impulse_noise": _impulse_noise,
    "saturate": _saturate,
    "pixelate": _pixelate,
}


@functools.lru_cache(maxsize=4)
def frost_texture(side: int) -> Tensor:
    """A square of generated ice, (3, side, side) in [0, 255]: needles that grow from scattered seeds, bluish white."""
    generator = torch.Generator().manual_seed(0)
    coarse, fine = (_needles(side, seeds, generator) for seeds in (40, 200))
    cover = functional.interpolate(
        torch.rand(1, 1, 7, 7, generator=generator), size=(side, side), mode="bicubic", align_corners=True
    )[0, 0].clamp(0, 1)
    light = (0.25 + 0.35 * cover + 0.5 * coarse * (0.3 + 0.7 * cover) + 0.3 * fine * cover).clamp(0, 1)
    tint = torch.tensor([0.8, 0.92, 1.0]).reshape(3, 1, 1)
    return 255 * light * (tint + (1 - tint) * light**2)


def _needles(side: int, seeds: int, generator: torch.Generator) -> Tensor:
    """Needles in [0, 1], each pointing away from the nearest of ``seeds`` points: noise smeared that way."""
    points = 2 * torch.rand(seeds, 2, generator=generator) - 1
    line = torch.linspace(-1, 1, side)
    here = torch.stack(torch.meshgrid(line, line, indexing="xy"), dim=-1)
    away, distance = here - points[0], torch.full((side, side), torch.inf)
    for point in points:
        offset = here - point
        length = offset.norm(dim=-1)
        away = torch.where((length < distance).unsqueeze(-1), offset, away)
        distance = torch.minimum(length, distance)
    cells = 6 * SIDE  # as fine as the pixels of the images that the constants were chosen for
    grain = torch.rand(1, 1, cells, cells, generator=generator)
    grain = functional.interpolate(grain, size=(side, side), mode="bilinear")
    step = functional.normalize(away, dim=-1) * 2 / cells
    smeared = torch.zeros(side, side)
    for distance_along in range(-6, 7):
        at = (here + distance_along * step).unsqueeze(0)
        smeared += functional.grid_sample(grain, at, padding_mode="reflection", align_corners=True)[0, 0]
    some = smeared.flatten()[:: max(1, smeared.numel() // 10_000)]
    low, high = float(some.quantile(0.4)), float(some.quantile(0.98))
    return ((smeared - low) / (high - low)).clamp(0, 1)


def _scale(x: Tensor) -> float:
    return min(x.shape[2:]) / SIDE


def _nearest(index: Tensor, size: int) -> Tensor:
    """Past the border the last pixel is repeated: a a | a b c | c c."""
    return index.clamp(0, size - 1)


def _mirrored(index: Tensor, size: int) -> Tensor:
    """Past the border the image is mirrored at the last pixel: c b | a b c | b a."""
    period = max(2 * size - 2, 1)
    index = index.remainder(period)
    return torch.minimum(index, period - index)


def _doubled(index: Tensor, size: int) -> Tensor:
    """Past the border the image is mirrored beside the last pixel: b a | a b c | c b."""
    index = index.remainder(2 * size)
    return torch.minimum(index, 2 * size - 1 - index)


Border = Callable[[Tensor, int], Tensor]


def _pad(x: Tensor, reach: int, border: Border) -> Tensor:
    rows, columns = (border(torch.arange(-reach, size + reach), size) for size in x.shape[2:])
    return x[:, :, rows][:, :, :, columns]


def _gaussian(x: Tensor, sigma: float, truncate: float, border: Border) -> Tensor:
    """Blur with a Gaussian cut at ``truncate`` sigmas, along the lines and down the columns."""
    reach = int(truncate * sigma + 0.5)
    weight = torch.exp(-0.5 * (torch.arange(-reach, reach + 1) / sigma) ** 2)
    rows, columns = (_band(weight / weight.sum(), size, border) for size in x.shape[2:])
    return rows @ (x @ columns.T)


def _band(weight: Tensor, size: int, border: Border) -> Tensor:
    """The (size, size) matrix that filters a line with ``weight``, which is centred on each pixel in turn."""
    reach = len(weight) // 2
    place = torch.arange(size).unsqueeze(1)
    source = border(place + torch.arange(-reach, reach + 1), size)
    band = torch.zeros(size, size)
    return band.index_put_((place.expand_as(source), source), weight.expand_as(source), accumulate=True)


def _sample(x: Tensor, points: Tensor, mirror_at: Literal["pixel", "edge"]) -> Tensor:
    """The images at ``points`` (n, height, width, 2), each a column and a row, between pixels linearly.

    Past the border the image is mirrored: at the last pixel (c b | a b c | b a) or at its edge (b a | a b c | c b).
    """
    size = x.new_tensor([x.shape[3], x.shape[2]])
    at = 2 * points / (size - 1) - 1 if mirror_at == "pixel" else (2 * points + 1) / size - 1
    return functional.grid_sample(x, at, padding_mode="reflection", align_corners=mirror_at == "pixel")


def _box(size: int, new: int) -> Tensor:
    """The (new, size) matrix that resizes a line with a box filter: a new pixel is the mean of those it covers."""
    scale = size / new
    centre = (torch.arange(new) + 0.5).unsqueeze(1) * scale
    away = (torch.arange(size) + 0.5 - centre) / max(scale, 1.0)
    weight = ((away > -0.5) & (away <= 0.5)).float()
    return weight / weight.sum(1, keepdim=True)


def _resize(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Along the lines, then down the columns; rounded to whole bytes after each, as an imaging library does."""
    across = (x @ columns.T + 0.5).floor()
    return (rows @ across + 0.5).floor()
