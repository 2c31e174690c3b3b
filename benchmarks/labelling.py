"""What measurements of `unspur predict` share: photographs, models of drawn weights in files, rows from Ray workers."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import nn

from unspur.practice.engine import AHEAD
from unspur.practice.export.formats import metadata_of, write_model
from unspur.practice.export.graph import Deployed
from unspur.practice.predict.inputs import Inputs
from unspur.practice.predict.on_ray import PIECE, Job, rows_on_ray
from unspur.practice.predict.stream import Rule
from unspur.version import __version__

DISTINCT = 400  # files; more images are links to them
PHOTOGRAPH = (500, 375)
CLASSES = tuple(str(number) for number in range(10))


def photographs(folder: Path, count: int, size: tuple[int, int] = PHOTOGRAPH, distinct: int = DISTINCT) -> None:
    """Distinct JPEG files of smooth noise, and hard links to them up to ``count``."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for number in range(count):
        path = folder / f"{number:07}.jpg"
        if number >= distinct:
            os.link(folder / f"{number % distinct:07}.jpg", path)
            continue
        coarse = generator.integers(0, 256, (47, 63, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(path, quality=90)


def small_model() -> nn.Module:
    """A model that takes next to no time, so that decoding dominates."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, len(CLASSES)))


def as_file(folder: Path, module: nn.Module, side: int) -> Path:
    """The model as an ONNX file, which workers on any machine can open."""
    folder.mkdir(parents=True)
    some = torch.randint(0, 256, (4, side, side, 3), dtype=torch.uint8)
    metadata = metadata_of(CLASSES, side, "stretch", None, __version__)
    return folder / write_model(folder, "onnx", Deployed(module, 3), metadata, some).file


class OnWorkers(NamedTuple):
    """What Ray workers did once all of them were at work."""

    rate: float  # images a second
    driver: float  # seconds of a processor that the process which hands out images and takes rows needs for an image


def on_workers(model: Path, folder: Path, workers: int, batch: int) -> OnWorkers:
    """Label ``folder`` with some workers of the Ray cluster that this process has started."""
    images = Inputs((str(folder),))
    job = Job(str(model), None, Rule(), 1, batch, images.count() or 0)
    labelled = before = 0
    began = worked = 0.0
    for number, rows in enumerate(rows_on_ray(iter(images), job, workers), 1):
        labelled += len(rows)
        if number == AHEAD * workers:  # all have begun, and what the first had done while they started is behind us
            began, worked, before = time.perf_counter(), time.process_time(), labelled
    since = labelled - before
    return OnWorkers(since / (time.perf_counter() - began), (time.process_time() - worked) / since)


def batch_for(images: int, workers: int) -> int:
    """A batch so small that each worker has several turns after those that are under way at first."""
    return max(1, min(64, images // (PIECE * workers * (AHEAD + 5))))


def start_ray(workers: int) -> None:
    """A cluster of this machine with room for ``workers``, also where there are fewer cores."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "error"}
    ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
