"""`unspur predict` against its parts. Bounds: at least 0.9 x the slower of decoding and the model alone; ten times the
images take at most 1.1 x the memory; two Ray workers are at least 1.7 x as fast as one where decoding dominates.

python benchmarks/predict.py [--images 10000] [--part speed|memory|ray|all]

Photographs of 500x375 are made in a temporary folder, and more images are links to the same files. The model is
resnet18 with drawn weights at 128 pixels: what it predicts does not matter here. Parts are measured in turns in one
process; peak memory is that of a process of its own, which labels small images with a small model. Where decoding and
the model share the same cores, predict cannot take less than the sum of their times, which is printed as well. Workers
of Ray have a model that takes next to no time, and their clock starts once all are at work: starting them does not
count. The bound on them needs as many idle cores as workers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from labelling import CLASSES, as_file, batch_for, on_workers, photographs, small_model, start_ray
from side_by_side import compare, verdict

from unspur.data.images.workers import Decoders
from unspur.models.foreign import wrap
from unspur.models.torchvision_compat import import_torchvision
from unspur.practice.predict.classifier import ImageClassifier
from unspur.practice.predict.inputs import Inputs
from unspur.practice.predict.predict import Wanted, predict_into
from unspur.practice.predict.stream import Rule, _decoded, rows_of
from unspur.practice.wrapped import to_predict

SIDE, BATCH, REPEATS = 128, 64, 3


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
            holds.append(speed(folder / "some", given.images))
        if given.part in ("memory", "all"):
            holds.append(memory(folder, given.images))
        if given.part in ("ray", "all"):
            holds.append(workers(folder))
    return int(not all(holds))


def classifier() -> ImageClassifier:
    torch.manual_seed(0)
    return to_predict(wrap(import_torchvision().models.resnet18(num_classes=len(CLASSES)), CLASSES, size=SIDE))


def speed(folder: Path, count: int) -> bool:
    """predict beside decoding alone and the model alone, on the same files."""
    plain = classifier()
    ready = plain.ready_for(10_000)
    inputs = Inputs((str(folder),))
    batch = torch.randint(0, 256, (BATCH, 3, SIDE, SIDE), dtype=torch.uint8)
    steps = -(-count // BATCH)
    with Decoders() as decoders:

        def decode() -> None:
            for _ in _decoded(iter(inputs), SIDE, "stretch", decoders, BATCH):
                pass

        def model() -> None:
            for _ in range(steps):
                ready.logits(batch)

        def torch_model() -> None:
            for _ in range(steps):
                plain.logits(batch)

        def whole() -> None:
            for _ in rows_of(iter(inputs), ready, Rule(), decoders, top=1, batch=BATCH):
                pass

        parts = {"decoding alone": decode, "model alone": model, "model alone, torch": torch_model, "predict": whole}
        seconds = compare(parts, repeats=REPEATS)
    for name, value in seconds.items():
        print(f"{name}: {count / value:,.0f} images a second")
    print(f"onnxruntime against torch: {seconds['model alone, torch'] / seconds['model alone']:.2f} x")
    both = seconds["decoding alone"] + seconds["model alone"]
    print(f"time of both one after the other, over predict's: {both / seconds['predict']:.2f}")
    slower = max(seconds["decoding alone"], seconds["model alone"])
    return verdict("predict, over the slower of decoding and the model", slower / seconds["predict"], at_least=0.9)


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
