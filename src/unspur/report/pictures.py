"""Images and heat maps as data URIs, small enough that a page can carry hundreds."""

from __future__ import annotations

import base64
import io

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate, max_pool2d, pad

LONGEST = 128  # larger images are shrunk to this many pixels on their longer side
COARSE, SMOOTH = 28, 56  # a map with fewer pixels than the one on its longer side is drawn with the other
LEVELS = 64  # shades of a heat map

# Dark violet to pale yellow: lightness only ever rises, so the order survives grey print and colour blindness.
HEAT = (
    (0.00, (43, 10, 79)),
    (0.35, (142, 29, 107)),
    (0.65, (228, 87, 46)),
    (0.85, (255, 176, 0)),
    (1.00, (255, 236, 138)),
)
LINE, LINE_COLOUR = 2, (255, 64, 160)  # the outline of a cue: pink, which neither nature nor the heat map has
OPAQUE_AT = 0.6  # from this value on a map hides as much of the image as it ever does
OPACITY = 0.92


def drawable(shape: torch.Size) -> bool:
    """Whether samples of ``shape`` are pictures: grey or RGB."""
    return len(shape) == 3 and shape[0] in (1, 3)


def picture(image: Tensor) -> str:
    """A uint8 image (channels, height, width) as a data URI."""
    pixels = image.permute(1, 2, 0).numpy()
    drawn = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    if max(drawn.size) > LONGEST:
        drawn.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    return _uri(drawn)


def photo(image: Tensor) -> str:
    """A uint8 image as a data URI a fifth of ``picture``'s size, where its last bits are not the point."""
    drawn = Image.fromarray(image.permute(1, 2, 0).numpy())
    if max(drawn.size) > LONGEST:
        drawn.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    drawn.save(file, format="webp", quality=80)
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"


def enlarged(image: Tensor) -> Tensor:
    """A small image (channels, height, width) with each pixel as a square, at most LONGEST pixels on a side."""
    factor = max(1, LONGEST // max(image.shape[1:]))
    return image.repeat_interleave(factor, 1).repeat_interleave(factor, 2)


def outlined(image: Tensor, inside: Tensor) -> Tensor:
    """A uint8 RGB image, enlarged, with a line around the pixels ``inside`` (height, width).

    >>> corner = torch.zeros(8, 8, dtype=torch.bool)
    >>> corner[:4, :4] = True
    >>> drawn = outlined(torch.zeros(3, 8, 8, dtype=torch.uint8), corner)
    >>> drawn.shape[1], [drawn[0, row, 30].item() for row in (0, 30, 63, 70)]
    (128, [255, 0, 255, 0])
    """
    drawn, mask = enlarged(image).clone(), enlarged(inside.unsqueeze(0))
    # Beyond the image nothing is inside, so that the line closes along the image's own edge.
    shrunk = -max_pool2d(-pad(mask.float(), (LINE,) * 4), 2 * LINE + 1, stride=1)
    edge = (mask & (shrunk < 1))[0]
    for channel, shade in enumerate(LINE_COLOUR):
        drawn[channel][edge] = shade
    return drawn


def heat(values: Tensor) -> str:
    """A map (height, width) as a translucent layer: its negative part ignored, its maximum the hottest shade.

    A coarse map is enlarged smoothly before it is coloured, so that no shade appears that is not on the scale.
    """
    values = values.detach().float().clamp(min=0)
    values = values / values.max().clamp(min=torch.finfo().tiny)
    height, width = values.shape
    if (longest := max(height, width)) < COARSE:
        size = (max(1, round(height * SMOOTH / longest)), max(1, round(width * SMOOTH / longest)))
        values = interpolate(values[None, None], size, mode="bicubic", align_corners=False)[0, 0].clamp(0, 1)
    return _uri(_coloured((values * (LEVELS - 1)).round().to(torch.uint8).numpy()))


def scale() -> str:
    """The heat map's shades from nothing to most, one pixel each."""
    return _uri(_coloured(np.arange(LEVELS, dtype=np.uint8)[None]))


def shades() -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Every shade as a row of red, green, blue and opacity."""
    level = np.linspace(0, 1, LEVELS)
    places = [place for place, _ in HEAT]
    colours = [np.interp(level, places, [colour[channel] for _, colour in HEAT]) for channel in range(3)]
    opacity = 255 * OPACITY * np.clip(level / OPAQUE_AT, 0, 1)
    return np.stack([*colours, opacity], axis=1).round().astype(np.uint8)


def _coloured(levels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> Image.Image:
    drawn, table = Image.fromarray(levels), shades()
    drawn.putpalette(table[:, :3].tobytes())
    drawn.info["transparency"] = table[:, 3].tobytes()
    return drawn


def _uri(image: Image.Image) -> str:
    """Lossless WebP: measured on digits and their maps, smaller than an optimised PNG by 15 to 50 %."""
    file = io.BytesIO()
    image.save(file, format="webp", lossless=True)
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
