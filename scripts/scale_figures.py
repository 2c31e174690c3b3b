"""What labelling an image costs on this machine, and how images a second grow with processes and Ray workers.

    OMP_NUM_THREADS=1 python scripts/scale_figures.py [--images 1000] [--most 4]

Photographs of 500x375 and resnet18 with drawn weights at 128 pixels, one thread a process, as in benchmarks/predict.py.
Costs are what a processor works for an image: to decode it and to score it, each alone. Images a second of decoding,
`predict` and Ray's workers are then measured by the clock at 1 to --most processes, and compared with what these costs
say they should be. Beyond the cores of the machine nothing should grow.
Needs the extras `ray` and `export`, and a quiet machine. Writes results/scale.json; `make results` then writes the
tables of docs/scale.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from scale_table import Point, Scale, point_rows

from unspur.core.files import write_json
from unspur.data.images.workers import Decoders, Task, _results, cores
from unspur.models.torchvision_compat import import_torchvision
from unspur.practice.predict.classifier import of_onnx
from unspur.practice.predict.inputs import Inputs, Named
from unspur.practice.predict.row_file import RowFile
from unspur.practice.predict.rows import Guess, Row
from unspur.practice.predict.stream import Rule, _decoded, rows_of
from unspur.version import commit

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from labelling import CLASSES, as_file, batch_for, on_workers, photographs, small_model, start_ray

FILE = Path(__file__).parents[1] / "results" / "scale.json"
SIDE, BATCH, ROWS, HANDED_OUT = 128, 64, 50_000, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000, help=f"at least {4 * BATCH}")
    parser.add_argument("--most", type=int, default=4, help="processes and workers")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photographs(folder / "images", given.images)
        torch.manual_seed(0)
        net = import_torchvision().models.resnet18(num_classes=len(CLASSES))
        model = as_file(folder / "model", net, SIDE)
        points = local_points(folder / "images", model, given.images, given.most)
        decode, scoring, write = decode_seconds(folder / "images"), model_seconds(model), row_seconds(folder)
        start_ray(given.most)
        points += ray_points(folder / "images", model, given.images, given.most)
        hand_out = hand_out_seconds(folder)
    found: Scale = {
        "command": f"OMP_NUM_THREADS=1 python scripts/scale_figures.py --images {given.images} --most {given.most}",
        "commit": commit(),
        "images": given.images,
        "cores": cores(),
        "load": round(load, 1),
        "decode": decode,
        "model": scoring,
        "hand_out": hand_out,
        "write": write,
        "points": points,
    }
    write_json(FILE, found)
    for row in point_rows(found):
        print(*row, sep="\t")


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    began = clock()
    work()
    return clock() - began


def local_points(folder: Path, model: Path, images: int, most: int) -> list[Point]:
    """Decoding alone, and `predict`, with 1 to ``most`` decoding processes."""
    inputs, classifier = Inputs((str(folder),)), of_onnx(model)
    points: list[Point] = []
    for processes in range(1, most + 1):
        with Decoders(processes) as decoders:
            ways: dict[str, Callable[[], object]] = {
                "decoding": lambda own=decoders: list(_decoded(iter(inputs), SIDE, "stretch", own, BATCH)),
                "predict": lambda own=decoders: list(
                    rows_of(iter(inputs), classifier, Rule(), own, top=1, batch=BATCH)
                ),
            }
            ways["decoding"]()  # starts the processes
            for what, way in ways.items():
                points.append({"what": what, "processes": processes, "images_per_second": images / seconds(way)})
    return sorted(points, key=lambda point: point["what"])


def decode_seconds(folder: Path) -> float:
    """Of a processor to decode an image, as a decoding process does it."""
    names = sorted(map(str, folder.iterdir()))
    tasks = [Task(tuple(names[at : at + BATCH]), SIDE, "stretch", send=True) for at in range(0, 4 * BATCH, BATCH)]
    return statistics.median(seconds(lambda own=task: list(_results(own)), time.process_time) for task in tasks) / BATCH


def model_seconds(model: Path, rounds: int = 5) -> float:
    """Of a processor to score an image of a batch."""
    classifier = of_onnx(model)
    batches = [torch.randint(0, 256, (BATCH, 3, SIDE, SIDE), dtype=torch.uint8) for _ in range(rounds + 1)]
    worked = [seconds(lambda own=batch: classifier.logits(own), time.process_time) for batch in batches]
    return statistics.median(worked[1:]) / BATCH


def row_seconds(folder: Path) -> float:
    """Of a processor to write a row to a file."""
    rows = [Row(f"images/{number:07}.jpg", (Guess("0", 0.5),), False, "") for number in range(ROWS)]
    file = RowFile(folder / "rows.csv", 1, {})
    with file.opened(iter([Named("", "")])):
        return (
            seconds(lambda: [file.add(rows[at : at + BATCH]) for at in range(0, ROWS, BATCH)], time.process_time) / ROWS
        )


def ray_points(folder: Path, model: Path, images: int, most: int) -> list[Point]:
    """1 to ``most`` Ray workers."""
    batch = batch_for(images, most)
    rates = [on_workers(model, folder, workers, batch).rate for workers in range(1, most + 1)]
    return [{"what": "Ray", "processes": each, "images_per_second": rate} for each, rate in enumerate(rates, 1)]


def hand_out_seconds(folder: Path) -> float:
    """Of the processor that lists images, hands them to workers and takes rows: many small ones, at the usual batch."""
    photographs(folder / "small", HANDED_OUT, (64, 48))
    return on_workers(as_file(folder / "small model", small_model(), 32), folder / "small", 2, BATCH).driver


if __name__ == "__main__":
    main()
