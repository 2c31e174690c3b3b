"""`unspur predict` against its parts. Bounds: with a core each, at least 0.9 x the slower of decoding and the model
alone; on shared cores at least 0.9 x both one after the other; ten times the images take at most 1.1 x the memory; two
Ray workers are at least 1.7 x as fast as one where decoding dominates.

python benchmarks/predict.py [--images 10000] [--part speed|memory|ray|all]

Photographs of 500x375 are made in a temporary folder, and more images are links to the same files. The model is
resnet18 with drawn weights at 128 pixels: what it predicts does not matter here. Parts are measured in turns in one
process, on slices of the images; peak memory is that of a process of its own, which labels small images with a small
model. Where decoding and the model share the same cores, predict cannot take less than the sum of their times. Workers
of Ray have a model that takes next to no time, and their clock starts once all are at work: starting them does not
count. The bound on them needs as many idle cores as workers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from labelling import CLASSES, as_file, batch_for, on_workers, photographs, small_model, start_ray
from side_by_side import verdict

from unspur.data.images.workers import Decoders
from unspur.models.foreign import wrap
from unspur.models.torchvision_compat import import_torchvision
from unspur.practice.predict.classifier import ImageClassifier
from unspur.practice.predict.inputs import Inputs, Named
from unspur.practice.predict.predict import Wanted, predict_into
from unspur.practice.predict.stream import Rule, _decoded, rows_of
from unspur.practice.wrapped import to_predict

SIDE, BATCH, SLICES = 128, 64, 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--part", choices=("speed", "memory", "ray", "all"), default="all")
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "OUT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return memory_of(*map(Path, given.child))
    load = f"{torch.get_num_threads()} threads, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{given.images:,} images, {load}")
    holds = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photographs(folder / "some", given.images)
        if given.part in ("speed", "all"):
            holds.append(speed(folder / "some"))
        if given.part in ("memory", "all"):
            holds.append(memory(folder, given.images))
        if given.part in ("ray", "all"):
            holds.append(workers(folder))
    return int(not all(holds))


def classifier() -> ImageClassifier:
    torch.manual_seed(0)
    return to_predict(wrap(import_torchvision().models.resnet18(num_classes=len(CLASSES)), CLASSES, size=SIDE))


def speed(folder: Path) -> bool:
    """predict beside decoding alone and the model alone, on the same files: with a core each, and on all cores."""
    images = list(Inputs((str(folder),)))
    slices = [images[at::SLICES] for at in range(SLICES)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    print("One decoding process and one thread of the model, which have a core each in predict:")
    each = parts_of(slices, Decoders(1))
    slower = max(each["decoding alone"], each["model alone"])
    holds = verdict("predict, over the slower of decoding and the model", slower / each["predict"], at_least=0.9)
    torch.set_num_threads(threads)
    print("All cores for decoding, then for the model, and both at once in predict:")
    shared = parts_of(slices, Decoders())
    print(f"onnxruntime against torch: {shared['model alone, torch'] / shared['model alone']:.2f} x")
    both = shared["decoding alone"] + shared["model alone"]
    return verdict("time of both one after the other, over predict's", both / shared["predict"], at_least=0.9) and holds


def parts_of(slices: list[list[Named]], decoders: Decoders) -> dict[str, float]:
    """The median seconds that each part takes for a slice of the images, in turns; a first slice warms up."""
    plain = classifier()
    ready = plain.ready_for(10_000)
    batch = torch.randint(0, 256, (BATCH, 3, SIDE, SIDE), dtype=torch.uint8)
    parts: dict[str, Callable[[list[Named]], Iterable[object]]] = {
        "decoding alone": lambda some: _decoded(iter(some), SIDE, "stretch", decoders, BATCH),
        "model alone": lambda some: (ready.logits(batch) for _ in range(-(-len(some) // BATCH))),
        "model alone, torch": lambda some: (plain.logits(batch) for _ in range(-(-len(some) // BATCH))),
        "predict": lambda some: rows_of(iter(some), ready, Rule(), decoders, top=1, batch=BATCH),
    }
    seconds: dict[str, list[float]] = {name: [] for name in parts}
    with decoders:
        for some in (slices[0][: 4 * BATCH], *slices):
            for name, part in parts.items():
                began = time.perf_counter()
                for _ in part(some):
                    pass
                seconds[name].append(time.perf_counter() - began)
    found = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    for name, value in found.items():
        print(f"  {name}: {len(slices[0]) / value:,.0f} images a second", flush=True)
    return found


def memory(folder: Path, count: int) -> bool:
    """Peak memory of a process that labels ``count`` small images, and ten times as many links to them."""
    peaks = []
    for times in (1, 10):
        images = folder / f"small-{times}"
        photographs(images, times * count, (64, 48))
        command = [sys.executable, __file__, "--child", images, folder / f"small-{times}.csv"]
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(ended.stdout)
        peaks.append(found["peak"])
        print(f"{found['images']:,} images: peak {found['peak'] / 1024:,.0f} MB, {found['rate']:,.0f} images a second")
    return verdict("peak memory at ten times the images", peaks[1] / peaks[0], at_most=1.1)


def memory_of(folder: Path, out: Path) -> int:
    small = wrap(small_model(), CLASSES, size=32)
    done = predict_into(to_predict(small), (str(folder),), Wanted(batch=BATCH), out)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"images": done["images"], "peak": peak, "rate": done["images_per_second"]}))
    return 0


def workers(folder: Path) -> bool:
    """One worker of a Ray cluster of this machine against two, with a model that takes next to no time."""
    count = len(list((folder / "some").iterdir()))
    model = as_file(folder / "model", small_model(), SIDE)
    start_ray(2)
    rates = []
    for number in (1, 2):
        rates.append(on_workers(model, folder / "some", number, batch_for(count, 2)).rate)
        print(f"{number} worker{'s' * (number > 1)}: {rates[-1]:,.0f} images a second, once all are at work")
    return verdict("two workers against one", rates[1] / rates[0], at_least=1.7)


if __name__ == "__main__":
    sys.exit(main())
