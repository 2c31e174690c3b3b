"""Small image files for tests."""

import itertools
from pathlib import Path

import numpy as np
from PIL import Image

from unspur.data.images.cache import ImageFile

SIZE = 8  # pixels each side of decoded images

COLOURS = itertools.count()


def photo(path: Path, colour=None, size=(12, 8), **options) -> Path:
    """Write a picture of one colour, unlike every other one unless the colour is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if colour is None:
        number = next(COLOURS)
        colour = (number * 5 % 256, number * 7 % 256, number // 256)
    Image.new("RGB", size, colour).save(path, **options)
    return path


def class_folders(root: Path, **counts: int) -> Path:
    """``root``/class/0.png, ... with as many pictures of each class as asked for."""
    for name, count in counts.items():
        for number in range(count):
            photo(root / name / f"{number:03}.png")
    return root


def noise(height, width, cell=4) -> np.ndarray:
    """A picture of smooth spots, each some ``cell`` pixels wide."""
    coarse = np.random.default_rng(0).integers(0, 256, (height // cell, width // cell, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def listed(root):
    """The PNG files below ``root`` as a listing gives them."""
    files = []
    for path in sorted(root.rglob("*.png")):
        status = path.stat()
        files.append(ImageFile(path.relative_to(root).as_posix(), status.st_size, status.st_mtime_ns))
    return files
