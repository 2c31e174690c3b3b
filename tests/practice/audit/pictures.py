"""Small picture sets for the audit's tests: smooth random scenes, nothing in which tells the label."""

from pathlib import Path

import numpy as np
from PIL import Image


def scene(draw, side=32):
    """A smooth random picture with a little noise."""
    coarse = draw.integers(40, 216, (5, 5, 3), dtype=np.uint8)
    pixels = np.asarray(Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC)).astype(float)
    return (pixels + draw.normal(0, 4, pixels.shape)).clip(0, 255).astype(np.uint8)


def write_set(root: Path, each=80, classes=2, change=None, save=None, conflict=0.0, side=32, seed=0) -> Path:
    """Class folders of scenes; ``change(pixels, value)`` plants a shortcut, ``save(image, path, value)`` stores it."""
    draw = np.random.default_rng(seed)
    for label in range(classes):
        folder = root / f"kind{label}"
        folder.mkdir(parents=True)
        names = draw.permutation(each * 7)
        for number in range(each):
            value = (label + 1) % classes if number < conflict * each else label
            pixels = scene(draw, side)
            if change:
                pixels = change(pixels, value)
            image, path = Image.fromarray(pixels), folder / f"{names[number]:05}.png"
            save(image, path, value) if save else image.save(path)
    return root
