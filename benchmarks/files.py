"""Images in files against images in memory. Bounds: the second epoch takes at most 1.1 x as long as from memory; the
first pass, which decodes, is at least 1.7 x as fast with two processes as with one; twice the images take no more
memory.

python benchmarks/files.py [--images 50000]

Everything is made in a temporary folder: photographs of 500x375 for the first pass, and small ones, as many as asked
for, for the rest. The epochs compared train small_cnn; beside them stands the same without the training, which is every
image once, in random order, in batches of floats.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from side_by_side import compare, verdict

from unspur.data.base import Dataset, Split
from unspur.data.images.cache import Cache, MappedImages
from unspur.data.images.listing import Listing, list_folder
from unspur.data.images.on_demand import ImagesOnDemand
from unspur.models.catalog import build_model
from unspur.train.loop import train
from unspur.train.orders import epoch_batches
from unspur.train.recipe import SGD
from unspur.train.session import Session

PHOTOGRAPHS, ROUNDS = 1200, 3  # of the first pass
SMALL, SIZE = 96, 64  # pixels of the small images, as files and decoded
TRAINED = 1000  # images of an epoch that trains


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=50_000)
    count = parser.parse_args().images
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        holds = [first_pass(folder), *epochs(folder, count)]
    return int(not all(holds))


def first_pass(folder: Path) -> bool:
    """Decode photographs into a cache with one process and with two, in turns.

    Beside the time on the clock, which other work on the machine distorts, stands the one that the processors worked:
    this process's own and that of its busiest decoder, which must follow each other on an otherwise idle machine.
    """
    root = folder / "photographs"
    write_jpegs(root, PHOTOGRAPHS, 100, (500, 375))
    listing, clock, worked = list_folder(root), list[float](), list[float]()
    for number in range(ROUNDS):
        seconds = {}
        for processes in (1, 2):
            cache = Cache(folder / f"cache {number} {processes}", listing.root, 224, "stretch")
            begin, own, others = time.perf_counter(), time.process_time(), decoders_time()
            cache.fill(listing.files, processes)
            busy = time.process_time() - own + (decoders_time() - others) / processes
            seconds[processes] = time.perf_counter() - begin, busy
        for ratios, (one, two) in zip((clock, worked), zip(*seconds.values(), strict=True), strict=True):
            ratios.append(one / two)
        print(
            f"{PHOTOGRAPHS} photographs: one process {seconds[1][0]:.2f} s (worked {seconds[1][1]:.2f} s), "
            f"two {seconds[2][0]:.2f} s (worked {seconds[2][1]:.2f} s)"
        )
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"two processes over one by the clock: {statistics.median(clock):.2f} ({cores} cores, load {load:.1f})")
    return verdict("first pass, two processes over one, by time worked", statistics.median(worked), at_least=1.7)


def epochs(folder: Path, count: int) -> list[bool]:
    """The same images from memory and from the cache, epoch by epoch, and what that costs in memory."""
    root = folder / "small"
    write_jpegs(root, count, 500, (SMALL, SMALL))
    begin = time.perf_counter()
    listing = list_folder(root)
    print(f"listing {count:,} files: {time.perf_counter() - begin:.2f} s")
    cache = Cache(folder / "cache", listing.root, SIZE, "stretch")
    begin, before = time.perf_counter(), resident()
    filled = cache.fill(listing.files)
    print(f"first pass over {count:,} images: {time.perf_counter() - begin:.1f} s, {resident() - before:+.0f} MB")
    begin = time.perf_counter()
    cache.fill(listing.files)
    print(f"finding them again: {time.perf_counter() - begin:.2f} s")
    mapped = Split(MappedImages.of(cache, filled.rows), torch.zeros(count, dtype=torch.long))
    flat = stays_flat(mapped, count, cache.pixel_file.stat().st_size)
    read_on_demand(listing)
    return [flat, second_epoch(mapped)]


def second_epoch(mapped: Split) -> bool:
    """Epochs from the cache, where they have been read before, against epochs from memory."""
    everything = torch.arange(len(mapped))
    in_memory = Split(mapped.x[everything], mapped.y)
    seconds = compare({"memory": lambda: epoch(in_memory), "cache": lambda: epoch(mapped)}, repeats=3)
    print(
        f"all images without training: from memory {seconds['memory']:.2f} s, from the cache {seconds['cache']:.2f} s"
    )
    some = torch.arange(0, len(mapped), max(1, len(mapped) // TRAINED))
    seconds = compare({"memory": trainer(in_memory.subset(some)), "cache": trainer(mapped.subset(some))})
    print(f"{len(some)} images trained on: memory {seconds['memory']:.2f} s, cache {seconds['cache']:.2f} s")
    return verdict("second epoch, cache over memory", seconds["cache"] / seconds["memory"], at_most=1.1)


def trainer(split: Split) -> Callable[[], None]:
    """An epoch of ERM as a function."""
    model = build_model("small_cnn", Dataset("small", split, split, {}, ("a", "b")))
    return lambda: train(model, split, SGD(epochs=1), stage="erm", session=Session())


def stays_flat(mapped: Split, count: int, size: int) -> bool:
    """Whether epochs over all images take no more memory than epochs over half of them."""
    epoch(mapped.subset(torch.arange(1000)))  # what torch itself needs
    peaks = {}
    for n in (count // 2, count):
        peaks[n] = max(epoch(mapped.subset(torch.arange(n))) for _ in range(2))
        print(f"two epochs over {n:,} images: resident memory at most {peaks[n]:.0f} MB")
    more, half = peaks[count] - peaks[count // 2], size / 2**21
    print(f"twice the images are {half:.0f} MB more on the disk and {more:+.0f} MB in memory")
    return verdict("memory over disk", more / half, at_most=0.25)


def read_on_demand(listing: Listing) -> None:
    names = [file.name for file in listing.files][:5000]
    again = Split(ImagesOnDemand(listing.root, names, SIZE, "stretch"), torch.zeros(len(names), dtype=torch.long))
    begin = time.perf_counter()
    peak = epoch(again)
    rate = len(names) / (time.perf_counter() - begin)
    print(f"decoded on demand: {rate:.0f} images a second, resident memory at most {peak:.0f} MB")


def epoch(split: Split) -> float:
    """Go through all batches; the most memory that this process had at the end of one of some."""
    peak = 0.0
    for number, _ in enumerate(split.batches(epoch_batches(len(split), 128, torch.Generator().manual_seed(0)))):
        if number % 10 == 0:
            peak = max(peak, resident())
    return peak


def write_jpegs(root: Path, count: int, different: int, size: tuple[int, int]) -> None:
    """``count`` files in ten folders, with ``different`` contents in turn."""
    generator, contents = np.random.default_rng(0), []
    for _ in range(different):
        coarse = generator.integers(0, 256, (size[1] // 8, size[0] // 8, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
        contents.append(file.getvalue())
    for label in range(10):
        (root / str(label)).mkdir(parents=True)
    for number in range(count):
        (root / str(number % 10) / f"{number:06}.jpg").write_bytes(contents[number % different])


def resident() -> float:
    """This process's memory in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def decoders_time() -> float:
    """The processor time of this process's children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
