"""Measures of images from the workers of a Ray cluster, the same and in the same order as those of one process."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from unspur.errors import UnspurError
from unspur.practice.audit.image_source import Source, read_file
from unspur.practice.audit.measure import Part, measured
from unspur.practice.engine import pieces_on_ray

PIECE = 4  # batches that a worker is given at once


class Job(NamedTuple):
    """What every worker does."""

    root: str
    side: int


class Batch(NamedTuple):
    """Images that are measured together."""

    names: dict[int, str]  # of each number, the file below the root
    keep: set[int]  # numbers of which a small copy is kept


class Measurer:
    """A worker: it decodes and measures files, on one thread."""

    def __init__(self, job: Job) -> None:
        import torch

        torch.set_num_threads(1)
        self._root, self._side = Path(job.root), job.side

    def do(self, piece: list[Batch]) -> list[Part]:
        """What is known of some batches."""
        return [self._part(batch) for batch in piece]

    def _part(self, batch: Batch) -> Part:
        return measured(
            lambda number: read_file(self._root, batch.names[number], self._side), list(batch.names), batch.keep
        )


def files_of(source: Source) -> Path:
    """The folder that holds the image files of ``source``."""
    if source.root is None:
        raise UnspurError(
            "--engine ray decodes files on other machines, but these images are in memory already; name a folder or a "
            "table of images, or leave --engine out."
        )
    return source.root


def parts_on_ray(
    source: Source, batches: Sequence[list[int]], side: int, keep: Container[int], workers: int | None
) -> Iterator[Part]:
    """The parts of ``source`` in order; all machines must see its files under the same path."""
    root = files_of(source)

    def batch(numbers: Sequence[int]) -> Batch:
        return Batch({number: source.names[number] for number in numbers}, {each for each in numbers if each in keep})

    pieces = ([batch(each) for each in batches[begin : begin + PIECE]] for begin in range(0, len(batches), PIECE))
    job = Job(str(root.absolute()), side)
    for parts in pieces_on_ray(Measurer, job, pieces, workers, "audit the same images again"):
        yield from parts
