"""Shortcuts that benchmarks/audit.py plants: what an image, or its file, shows when its value is 1.

TUNED kinds were looked at while the audit's rules and features were written (specks, hue and saturation were held out
at first; features were added for them, on cats and dogs). Of HELD_OUT kinds, verdicts of earlier versions were seen and
nothing was changed for them; FRESH ones were first run when the committed results were made. Measures are shares of
the image's side, so that a kind looks the same on small and on large images.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

Pixels = NDArray[np.uint8]  # (height, width, 3)
Draw = np.random.Generator
Where = tuple[float, float, float, float]  # top, left, bottom, right as shares of the side


@dataclass(frozen=True)
class Stored:
    """An image as it is written: pixels or a finished file, and how."""

    image: Image.Image
    format: str = "PNG"
    options: dict[str, object] = field(default_factory=dict)
    prefix: str = "img"


@dataclass(frozen=True)
class Plant:
    """A kind of shortcut: what it does to an image, which family of findings should name it, and where it is."""

    apply: Callable[[Image.Image, Draw], Image.Image | Stored]
    family: str  # place, rare, moving, colour, brightness, contrast, noise, sharpness, compression, trace, file
    where: Where | None = None  # None: no fixed place
    otherwise: Callable[[Image.Image, Draw], Image.Image | Stored] | None = None  # what images of value 0 show


def _paint(image: Image.Image, box: Where, colour: tuple[int, int, int], opacity: float = 1.0) -> Image.Image:
    pixels = np.asarray(image).astype(float)
    height, width = pixels.shape[:2]
    top, left = round(box[0] * height), round(box[1] * width)
    bottom, right = max(top + 1, round(box[2] * height)), max(left + 1, round(box[3] * width))
    part = pixels[top:bottom, left:right]
    pixels[top:bottom, left:right] = part * (1 - opacity) + np.array(colour) * opacity
    return _image(pixels)


def _image(pixels: NDArray[np.floating]) -> Image.Image:
    return Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))


def _painter(
    box: Where, colour: tuple[int, int, int], opacity: float = 1.0
) -> Callable[[Image.Image, Draw], Image.Image]:
    return lambda image, _draw: _paint(image, box, colour, opacity)


def _border(image: Image.Image, _draw: Draw) -> Image.Image:
    pixels = np.asarray(image).copy()
    edge = max(1, round(min(image.size) / 32))
    for strip in (pixels[:edge], pixels[-edge:], pixels[:, :edge], pixels[:, -edge:]):
        strip[:] = (20, 20, 20)
    return Image.fromarray(pixels)


def _ring(image: Image.Image, draw: Draw) -> Image.Image:
    side = min(image.size)
    size = max(6, round(0.12 * side))
    left, top = (int(draw.integers(0, length - size)) for length in image.size)
    copy = image.copy()
    ImageDraw.Draw(copy).ellipse((left, top, left + size, top + size), outline=(230, 30, 30), width=max(1, size // 6))
    return copy


def _cross(image: Image.Image, draw: Draw) -> Image.Image:
    size = max(6, round(0.12 * min(image.size)))
    left, top = (int(draw.integers(0, length - size)) for length in image.size)
    copy, wide = image.copy(), max(1, size // 5)
    pen = ImageDraw.Draw(copy)
    pen.line((left, top, left + size, top + size), fill=(250, 250, 120), width=wide)
    pen.line((left + size, top, left, top + size), fill=(20, 20, 90), width=wide)
    return copy


def _text(image: Image.Image, _draw: Draw) -> Image.Image:
    width, height = image.size
    copy = image.copy()
    pen, unit = ImageDraw.Draw(copy), max(1, round(height / 40))
    left, top = round(0.7 * width), height - 5 * unit - 1
    for number in range(4):  # strokes like letters
        x = left + number * 2 * unit
        pen.rectangle((x, top, x + unit - 1, top + 4 * unit), fill=(255, 255, 255) if number % 2 else (0, 0, 0))
    return copy


def _stripes(image: Image.Image, _draw: Draw) -> Image.Image:
    pixels = np.asarray(image).astype(float)
    rows, columns = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
    return _image(pixels + 8 * np.sign(np.sin((rows + columns) * np.pi / 3))[..., None])


def _tint(image: Image.Image, _draw: Draw) -> Image.Image:
    return _image(np.asarray(image) * np.array([1.08, 1.0, 0.92]))


def _noise(image: Image.Image, draw: Draw) -> Image.Image:
    pixels = np.asarray(image).astype(float)
    return _image(pixels + draw.normal(0, 6, pixels.shape))


def _jpeg(image: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")


def _resample(image: Image.Image, _draw: Draw) -> Image.Image:
    small = image.resize([max(8, round(0.7 * length)) for length in image.size], Image.Resampling.BILINEAR)
    return small.resize(image.size, Image.Resampling.BILINEAR)


def _wide(image: Image.Image, _draw: Draw) -> Image.Image:
    width, height = image.size
    edge = round(height / 16)
    return image.crop((0, edge, width, height - edge))


def _vignette(image: Image.Image, _draw: Draw) -> Image.Image:
    pixels = np.asarray(image).astype(float)
    rows, columns = np.mgrid[-1 : 1 : pixels.shape[0] * 1j, -1 : 1 : pixels.shape[1] * 1j]
    return _image(pixels * (1 - 0.25 * (rows**2 + columns**2))[..., None])


def _gamma(image: Image.Image, _draw: Draw) -> Image.Image:
    return _image(255 * (np.asarray(image) / 255) ** 0.75)


def _specks(image: Image.Image, draw: Draw) -> Image.Image:
    pixels = np.asarray(image).copy()
    chosen = draw.random(pixels.shape[:2]) < 0.004
    pixels[chosen] = np.where(draw.random((int(chosen.sum()), 1)) < 0.5, 0, 255)
    return Image.fromarray(pixels)


def _letterbox(image: Image.Image, _draw: Draw) -> Image.Image:
    return _paint(_paint(image, (0, 0, 0.06, 1), (0, 0, 0)), (0.94, 0, 1, 1), (0, 0, 0))


def _scanlines(image: Image.Image, _draw: Draw) -> Image.Image:
    pixels = np.asarray(image).astype(float)
    pixels[::4] *= 0.93
    return _image(pixels)


def _posterise(image: Image.Image, _draw: Draw) -> Image.Image:
    return Image.fromarray(np.asarray(image) // 12 * 12 + 6)


def _hue(image: Image.Image, _draw: Draw) -> Image.Image:
    pixels = np.asarray(image).astype(float)
    return _image(pixels @ np.array([[0.86, 0.14, 0.0], [0.0, 0.86, 0.14], [0.14, 0.0, 0.86]]))


def _camera(image: Image.Image, _draw: Draw) -> Stored:
    exif = Image.Exif()
    exif[0x010F], exif[0x0110] = "Acme", "A-1"
    return Stored(image, "JPEG", {"quality": 92, "exif": exif})


def _plain_jpeg(image: Image.Image, _draw: Draw) -> Stored:
    return Stored(image, "JPEG", {"quality": 92})


def _rare(image: Image.Image, draw: Draw) -> Image.Image:
    """A coloured disc in one image of eight, anywhere near the edge."""
    if draw.random() > 0.125:
        return image
    size = round(0.25 * min(image.size))
    left, top = (int(draw.choice([0, length - size])) for length in image.size)
    copy = image.copy()
    ImageDraw.Draw(copy).ellipse((left, top, left + size, top + size), fill=(20, 210, 190))
    return copy


def _channel_shift(image: Image.Image, _draw: Draw) -> Image.Image:
    pixels = np.asarray(image).copy()
    pixels[:, 1:, 0] = pixels[:, :-1, 0]
    return Image.fromarray(pixels)


def _timestamp(image: Image.Image, draw: Draw) -> Image.Image:
    """Bars of random heights, like digits that differ, in the lower left corner."""
    height = image.size[1]
    copy = image.copy()
    pen, unit = ImageDraw.Draw(copy), max(1, round(height / 32))
    for number in range(6):
        left, tall = unit + number * 2 * unit, int(draw.integers(1, 5)) * unit
        pen.rectangle((left, height - unit - tall, left + unit - 1, height - unit - 1), fill=(255, 160, 20))
    return copy


def _palette(image: Image.Image, _draw: Draw) -> Image.Image:
    return image.quantize(48, dither=Image.Dither.FLOYDSTEINBERG).convert("RGB")


def _zoom(image: Image.Image, _draw: Draw) -> Image.Image:
    width, height = image.size
    edge = round(0.06 * min(image.size))
    return image.crop((edge, edge, width - edge, height - edge)).resize(image.size, Image.Resampling.BICUBIC)


def _dead_pixels(image: Image.Image, _draw: Draw) -> Image.Image:
    pixels = np.asarray(image).copy()
    height, width = pixels.shape[:2]
    for row, column in ((0.2, 0.3), (0.45, 0.8), (0.7, 0.15)):
        pixels[round(row * height), round(column * width)] = (255, 0, 255)
    return Image.fromarray(pixels)


def _star(image: Image.Image, draw: Draw) -> Image.Image:
    size = max(6, round(0.1 * min(image.size)))
    left, top = (int(draw.integers(0, length - size)) for length in image.size)
    copy, half = image.copy(), size // 2
    pen = ImageDraw.Draw(copy)
    pen.line((left, top + half, left + size, top + half), fill=(60, 255, 80))
    pen.line((left + half, top, left + half, top + size), fill=(60, 255, 80))
    return copy


TUNED: dict[str, Plant] = {
    "corner_square": Plant(_painter((0.02, 0.02, 0.16, 0.16), (40, 90, 230)), "place", (0.02, 0.02, 0.16, 0.16)),
    "text_tag": Plant(_text, "place", (0.85, 0.7, 1, 1)),
    "faint_patch": Plant(_painter((0.8, 0.1, 0.95, 0.25), (255, 255, 255), 0.25), "place", (0.8, 0.1, 0.95, 0.25)),
    "border": Plant(_border, "place", (0, 0, 1, 1)),
    "moving_ring": Plant(_ring, "moving"),
    "tint": Plant(_tint, "colour"),
    "brightness": Plant(lambda image, _: ImageEnhance.Brightness(image).enhance(1.2), "brightness"),
    "contrast": Plant(lambda image, _: ImageEnhance.Contrast(image).enhance(0.75), "contrast"),
    "noise": Plant(_noise, "noise"),
    "blur": Plant(lambda image, _: image.filter(ImageFilter.GaussianBlur(0.8)), "sharpness"),
    "jpeg_pixels": Plant(lambda image, _: _jpeg(image, 40), "compression"),
    "jpeg_quality": Plant(lambda image, _: Stored(image, "JPEG", {"quality": 70}), "file", None, _plain_jpeg),
    "format": Plant(lambda image, _: Stored(image, "JPEG", {"quality": 92}), "file"),
    "aspect": Plant(_wide, "file"),
    "rare_disc": Plant(_rare, "rare"),
    "hue": Plant(_hue, "colour"),
    "saturation": Plant(lambda image, _: ImageEnhance.Color(image).enhance(0.6), "colour"),
    "specks": Plant(_specks, "trace"),
}
HELD_OUT: dict[str, Plant] = {
    "middle_dot": Plant(_painter((0.47, 0.47, 0.56, 0.56), (20, 200, 60)), "place", (0.47, 0.47, 0.56, 0.56)),
    "edge_line": Plant(_painter((0, 0, 1, 0.03), (200, 200, 200), 0.7), "place", (0, 0, 1, 0.03)),
    "watermark": Plant(_painter((0.05, 0.6, 0.2, 0.95), (255, 240, 200), 0.3), "place", (0.05, 0.6, 0.2, 0.95)),
    "letterbox": Plant(_letterbox, "place", (0, 0, 1, 1)),
    "moving_cross": Plant(_cross, "moving"),
    "stripes": Plant(_stripes, "trace"),
    "scanlines": Plant(_scanlines, "trace"),
    "vignette": Plant(_vignette, "shading"),
    "gamma": Plant(_gamma, "brightness"),
    "posterise": Plant(_posterise, "trace"),
    "sharpen": Plant(lambda image, _: image.filter(ImageFilter.UnsharpMask(2, 80, 0)), "sharpness"),
    "resample": Plant(_resample, "sharpness"),
    "camera": Plant(_camera, "file", None, _plain_jpeg),
    "name": Plant(lambda image, _: Stored(image, prefix="scan"), "file"),
}
FRESH: dict[str, Plant] = {
    "median": Plant(lambda image, _: image.filter(ImageFilter.MedianFilter(3)), "sharpness"),
    "channel_shift": Plant(_channel_shift, "trace"),
    "timestamp": Plant(_timestamp, "place", (0.8, 0.02, 1, 0.42)),
    "palette": Plant(_palette, "trace"),
    "zoom": Plant(_zoom, "sharpness"),
    "dead_pixels": Plant(_dead_pixels, "pattern"),
    "moving_star": Plant(_star, "moving"),
}
KINDS = TUNED | HELD_OUT | FRESH
