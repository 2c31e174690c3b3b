"""Make src/unspur/data/mini/digits.bin, the embedded digits, from the real MNIST.

    python scripts/make_mini.py [--data-dir DIR]

Takes 1,000 training digits of each class from MNIST's training file and 200 test digits of each class from its test
file: the first ones of a permutation of the class's members drawn by NumPy's PCG64 generator with seed 0, training
file first, class 0 first; kept in the order of the original file. Packing is lossless and checked before it is written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from unspur.data.files.fetch import DataFiles
from unspur.data.mini import codec
from unspur.data.mini.rans import WHOLE, Array, Encoder, Model
from unspur.data.sets.mnist import MNIST_FILES, read_part

OUT = Path(__file__).resolve().parents[1] / "src" / "unspur" / "data" / "mini" / "digits.bin"


class Recorder:
    """A coder that only remembers what it is asked to code."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Array]] = {name: [] for name in codec.MODELS}

    def code(self, model: str, context: Array, symbol: Array) -> Array:
        symbols = codec.MODELS[model][2]
        self.seen[model].append(context * symbols + symbol)
        return symbol

    def counts(self, model: str) -> Array:
        contexts, _, symbols = codec.MODELS[model]
        cells = np.concatenate(self.seen[model])
        return np.bincount(cells, minlength=contexts * symbols).reshape(contexts, symbols)


def choose(images: Array, labels: Array, each: int, random: np.random.Generator) -> Array:
    """``each`` images of every class, class by class: (classes, each, 28, 28)."""
    members = (random.permutation(np.flatnonzero(labels == digit))[:each] for digit in range(codec.CLASSES))
    return np.stack([images[np.sort(chosen)] for chosen in members])


def cluster(counts: Array, tables: int, rounds: int = 30) -> tuple[Array, Array]:
    """Each context's table, and the tables' shares: few tables that cost few bits (k-means under relative entropy).

    A context also pays for naming its table, so rare contexts go with the crowd and the list of names stays small.
    """
    seen = np.flatnonzero(counts.sum(1))
    known = counts[seen].astype(float)
    start = np.argsort(-known.sum(1), kind="stable")[:tables]
    shares = known[start] + 0.5
    shares = np.concatenate([shares, np.ones((tables - len(start), counts.shape[1]))])
    use = np.ones(tables)
    for _ in range(rounds):
        shares /= shares.sum(1, keepdims=True)
        cost = -(known @ np.log2(shares).T) - np.log2(use / use.sum())
        best = cost.argmin(1)
        shares = np.stack([np.bincount(best, column, minlength=tables) for column in known.T], axis=1) + 0.02
        use = np.bincount(best, minlength=tables) + 0.1
    order = np.argsort(-use, kind="stable")  # the commonest name is 0, which unseen contexts get too
    table = np.zeros(len(counts), np.uint8)
    table[seen] = np.argsort(order)[best]
    return table, shares[order]


def frequencies(shares: Array) -> Array:
    """Whole numbers near ``shares`` that add up to WHOLE in each row, none of them 0."""
    symbols = shares.shape[1]
    rounded = 1 + np.floor(shares / shares.sum(1, keepdims=True) * (WHOLE - symbols)).astype(np.int64)
    rounded[np.arange(len(rounded)), rounded.argmax(1)] += WHOLE - rounded.sum(1)
    return rounded


def classify_shapes(pixels: Array) -> Array:
    """A class for each pattern of kinds around a grey pixel, by the upper half of the pixel's value."""
    kinds = codec.padded(codec.kinds_of(pixels))
    around = codec.triples(kinds).astype(np.int64)
    shape = (around[1:-3] * 729 + around[2:-2] * 27 + around[3:-1])[:, codec.PAD : -codec.PAD]
    grey = kinds[codec.PAD : -codec.PAD, codec.PAD : -codec.PAD] == 1
    cells = shape[grey] * 16 + ((pixels[grey] - 1) >> 4)
    counts = np.bincount(cells, minlength=codec.SHAPES * 16).reshape(codec.SHAPES, 16)
    return cluster(counts, 128)[0]


def pack(digits: Array) -> bytes:
    """The file's content for ``digits`` (DIGITS, 28, 28), class by class."""
    pixels = np.ascontiguousarray(digits.transpose(1, 2, 0))
    shape_class, frame = classify_shapes(pixels), codec.frame_of(pixels)
    recorder = Recorder()
    codec.walk(recorder, shape_class, frame, pixels)
    models = {}
    for name, (_, tables, _) in codec.MODELS.items():
        table, shares = cluster(recorder.counts(name), tables)
        models[name] = Model(table, frequencies(shares))
    encoder = Encoder(models)
    codec.walk(encoder, shape_class, frame, pixels)
    side = codec.Tables(models, shape_class).pack()
    return len(side).to_bytes(4, "little") + side + encoder.finish()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    files = DataFiles(parser.parse_args().data_dir)
    files.check(MNIST_FILES)
    random = np.random.default_rng(0)
    parts = [
        choose(*(part.squeeze().numpy() for part in read_part(MNIST_FILES, files, stem)), each, random)
        for stem, each in (("train", codec.TRAIN), ("t10k", codec.TEST))
    ]
    digits = np.concatenate(parts, axis=1).reshape(codec.DIGITS, codec.SIDE, codec.SIDE)
    packed = pack(digits)
    if not np.array_equal(codec.unpack(packed), digits):
        raise SystemExit("What was packed does not unpack to the same digits; nothing was written.")
    OUT.write_bytes(packed)
    print(f"{OUT.name}: {len(packed):,} bytes for {len(digits):,} digits ({len(packed) / len(digits):.1f} each)")


if __name__ == "__main__":
    main()
