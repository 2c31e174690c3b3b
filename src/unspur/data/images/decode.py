"""Any image file as uint8 RGB of one size; for a file that cannot be decoded, the reason."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

# Nothing here may import torch: every decoding process would wait for it.

SquareFit = Literal["stretch", "crop", "pad"]  # how an image is made to fit into its square
Pixels = NDArray[np.uint8]  # (3, height, width)

LARGEST_FILE = 1 << 30  # bytes; a larger file is no picture, and reading it could take all the memory
SHARPNESS = 2  # a JPEG may be unpacked at 1/2, 1/4 or 1/8 if its sides keep this many times the pixels that are wanted


class Unreadable(Exception):
    """A file that is no usable image; the text continues a sentence after the file's name, as in "is empty"."""


@cache
def formats() -> tuple[str, ...]:
    """The formats that are read: all that Pillow knows except EPS, which it would pass to another program to run."""
    Image.init()
    return tuple(name for name in Image.ID if name != "EPS")


@cache
def suffixes() -> frozenset[str]:
    """The endings, in lower case, by which a folder's images are told from its other files."""
    readable = set(formats()) - {"MPEG"}  # Pillow can only tell its size
    return frozenset(suffix for suffix, name in Image.registered_extensions().items() if name in readable)


def decode(content: bytes, size: int, fit: SquareFit = "stretch") -> Pixels:
    """The image in ``content`` as (3, size, size), upright; what cannot be decoded raises Unreadable.

    ``stretch`` shows the whole image, distorted to a square; ``crop`` shows its middle undistorted; ``pad`` shows the
    whole image undistorted with black beside it. Transparent parts become white, of sixteen bits the upper eight are
    kept, and of an animation the first picture.
    """
    return _decode(content, lambda image: _square(image, size, fit), SHARPNESS * size)


def decode_whole(content: bytes) -> Pixels:
    """The image in ``content`` as (3, height, width), in its own size; the rest is as ``decode`` does it."""
    return _decode(content, lambda image: image)


def _decode(content: bytes, finish: Callable[[Image.Image], Image.Image], enough: int | None = None) -> Pixels:
    """What ``finish`` makes of the image in RGB; a JPEG may be unpacked smaller, down to ``enough`` pixels a side."""
    if not content:
        raise Unreadable("is empty (0 bytes)")
    try:
        # Pillow warns of odd metadata and of large images; neither matters here.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content), formats=formats()) as image:
                if enough:
                    image.draft(None, (enough, enough))
                image.load()
                _turn(image)
                return np.ascontiguousarray(np.asarray(finish(_rgb(image))).transpose(2, 0, 1))
    except Unreadable:
        raise
    except Image.DecompressionBombError:
        limit = 2 * (Image.MAX_IMAGE_PIXELS or 0) // 1_000_000
        raise Unreadable(f"would unpack to more than {limit} million pixels (a decompression bomb)") from None
    except UnidentifiedImageError:
        raise Unreadable("is not an image that can be read") from None
    except Exception as error:  # Pillow's readers raise anything: OSError, SyntaxError, struct.error, KeyError, ...
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Unreadable("is truncated" if "truncated" in reason.lower() else f"cannot be decoded ({reason})") from None


def _turn(image: Image.Image) -> None:
    """Turn the image as its camera's note (EXIF) says; broken notes are common and turn nothing."""
    with contextlib.suppress(Exception):
        ImageOps.exif_transpose(image, in_place=True)


def _rgb(image: Image.Image) -> Image.Image:
    """The image in RGB, the whole range of its values over 0 to 255."""
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise Unreadable(f"has values from {values.min()} to {values.max()}; save it with 8 or 16 bits")
        return Image.fromarray((values >> 8).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        values = np.asarray(image)
        if not (values.min() >= 0 and values.max() <= 1):
            raise Unreadable(f"has values from {values.min():g} to {values.max():g}; save it with 8 or 16 bits")
        return Image.fromarray((values * 255).round().astype(np.uint8)).convert("RGB")
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        # Without this, colours hidden below transparent pixels would show.
        coloured = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", coloured.size, "white"), coloured).convert("RGB")
    return image.convert("RGB")


def _square(image: Image.Image, size: int, fit: SquareFit) -> Image.Image:
    target, smooth = (size, size), Image.Resampling.BILINEAR
    if fit == "crop":
        return ImageOps.fit(image, target, smooth)
    if fit == "pad":
        return ImageOps.pad(image, target, smooth)
    return image if image.size == target else image.resize(target, smooth)
