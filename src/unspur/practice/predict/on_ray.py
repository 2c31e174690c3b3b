"""Rows from the workers of a Ray cluster, the same and in the same order as those of one process.

Each worker holds the model and one decoding process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from unspur.data.images.workers import Decoders
from unspur.practice.engine import pieces_on_ray
from unspur.practice.predict.classifier import open_classifier
from unspur.practice.predict.inputs import Named, in_parts
from unspur.practice.predict.rows import Row
from unspur.practice.predict.stream import Rule, rows_of

PIECE = 4  # batches that a worker is given at once


class Job(NamedTuple):
    """What every worker does."""

    model: str
    data_dir: str | None
    rule: Rule
    top: int
    batch: int
    samples: int  # about how many images there are, which says what way of scoring pays


class Labeller:
    """A worker: the model, and a process that decodes for it."""

    def __init__(self, job: Job) -> None:
        import torch

        torch.set_num_threads(1)
        self._job, self._decoders = job, Decoders(1)
        opened = open_classifier(Path(job.model), Path(job.data_dir) if job.data_dir else None)
        self._classifier = opened.ready_for(job.samples)

    def do(self, piece: list[Named]) -> list[Row]:
        """The rows of some images."""
        job = self._job
        batches = rows_of(iter(piece), self._classifier, job.rule, self._decoders, top=job.top, batch=job.batch)
        return [row for rows in batches for row in rows]


def rows_on_ray(images: Iterator[Named], job: Job, workers: int | None) -> Iterator[list[Row]]:
    """The rows of ``images`` in order; all machines must see the same files."""
    job = job._replace(model=os.path.abspath(job.model))
    pieces = (
        [image._replace(path=os.path.abspath(image.path)) for image in part]
        for part in in_parts(images, PIECE * job.batch)
    )
    return pieces_on_ray(Labeller, job, pieces, workers, "go on with --resume")
