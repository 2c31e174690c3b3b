"""Make src/unspur/data/mini/digits.xz, the embedded digits, from the real MNIST.

    python scripts/make_mini.py [--data-dir DIR]

Takes 1,000 training digits of each class from MNIST's training file and 200 test digits of each class from its test
file: the first ones of a permutation of the class's members drawn by NumPy's PCG64 generator with seed 0, training
file first, class 0 first; kept in the order of the original file.
"""

from __future__ import annotations

import argparse
import lzma
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unspur.data.files.fetch import DataFiles
from unspur.data.mini.digits import CLASSES, FILE, TEST, TRAIN
from unspur.data.sets.mnist import MNIST_FILES, read_part

OUT = Path(__file__).resolve().parents[1] / "src" / "unspur" / "data" / "mini" / FILE
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "pb": 0}]  # smallest for these pixels


def choose(
    images: NDArray[np.uint8], labels: NDArray[np.int64], each: int, random: np.random.Generator
) -> NDArray[np.uint8]:
    """``each`` images of every class, class by class: (classes, each, 28, 28)."""
    members = (random.permutation(np.flatnonzero(labels == digit))[:each] for digit in range(CLASSES))
    return np.stack([images[np.sort(chosen)] for chosen in members])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    files = DataFiles(parser.parse_args().data_dir)
    files.check(MNIST_FILES)
    random = np.random.default_rng(0)
    parts = [
        choose(*(part.squeeze().numpy() for part in read_part(MNIST_FILES, files, stem)), each, random)
        for stem, each in (("train", TRAIN), ("t10k", TEST))
    ]
    digits = np.concatenate(parts, axis=1)
    packed = lzma.compress(digits.tobytes(), filters=FILTERS)
    OUT.write_bytes(packed)
    print(f"{OUT.name}: {len(packed):,} bytes for {digits.shape[0] * digits.shape[1]:,} digits")


if __name__ == "__main__":
    main()
