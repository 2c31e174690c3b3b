"""Rows from the workers of a Ray cluster, the same and in the same order as those of one process.

Each worker is an actor that holds the model and one decoding process. Pieces of the images go to whoever has least to
do, and come back in order, a bounded number of them ahead. What a worker had that dies, with its machine or alone, the
others do.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from unspur.data.images.workers import Decoders
from unspur.errors import RunFailed
from unspur.practice.predict.classifier import open_classifier
from unspur.practice.predict.inputs import Named, in_parts
from unspur.practice.predict.rows import Row
from unspur.practice.predict.stream import Rule, rows_of
from unspur.runs.engines import ray_cluster

PIECE = 4  # batches that a worker is given at once
AHEAD = 3  # pieces for each worker that are under way


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

    def label(self, images: list[Named]) -> list[Row]:
        """The rows of a piece."""
        job = self._job
        batches = rows_of(iter(images), self._classifier, job.rule, self._decoders, top=job.top, batch=job.batch)
        return [row for rows in batches for row in rows]


def rows_on_ray(images: Iterator[Named], job: Job, workers: int | None) -> Iterator[list[Row]]:
    """The rows of ``images`` in order; all machines must see the same files and have unspur installed."""
    job = job._replace(model=os.path.abspath(job.model))
    with ray_cluster(workers) as ray:
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        pool = _Workers(ray, job, count)
        try:
            for piece in in_parts(images, PIECE * job.batch):
                pool.give([image._replace(path=os.path.abspath(image.path)) for image in piece])
                if len(pool) > AHEAD * count:
                    yield pool.take()
            while len(pool):
                yield pool.take()
        finally:
            pool.end()


class _Workers:
    """Workers, and the pieces that they have, in the order of the images."""

    def __init__(self, ray: Any, job: Job, count: int) -> None:
        self._ray = ray
        kind, shared = ray.remote(num_cpus=1, max_restarts=0)(Labeller), ray.put(job)
        self._living = {number: kind.remote(shared) for number in range(count)}
        self._pieces: deque[_Piece] = deque()

    def __len__(self) -> int:
        return len(self._pieces)

    def give(self, images: list[Named]) -> None:
        self._pieces.append(self._given(images))

    def take(self) -> list[Row]:
        """The rows of the first piece, whoever does it in the end."""
        piece = self._pieces.popleft()
        while True:
            try:
                rows: list[Row] = self._ray.get(piece.answer)
                return rows
            except self._ray.exceptions.RayActorError as error:
                self._living.pop(piece.worker, None)
                if not self._living:
                    raise RunFailed(
                        f"All workers of the cluster died ({_last_line(error)}); go on with --resume."
                    ) from None
                piece = self._given(piece.images)
            except self._ray.exceptions.RayError as error:
                raise RunFailed(f"A worker of the cluster failed ({_last_line(error)}); go on with --resume.") from None

    def end(self) -> None:
        for actor in self._living.values():
            self._ray.kill(actor)

    def _given(self, images: list[Named]) -> _Piece:
        busy = [piece.worker for piece in self._pieces]
        worker = min(self._living, key=busy.count)
        return _Piece(images, worker, self._living[worker].label.remote(images))


class _Piece(NamedTuple):
    images: list[Named]
    worker: int
    answer: Any  # Ray's reference to it


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1].strip().rstrip(".")
