"""Where images are worked on: in this process, or by the workers of a Ray cluster, with the same results in order.

A worker is an actor. Each piece of work goes to the worker with the least to do, and only a bounded number is in
progress. If a worker dies, alone or with its machine, the others do its pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from unspur.errors import RunFailed, require, unknown
from unspur.runs.engines import ray_cluster

ENGINES = ("local", "ray")
AHEAD = 3  # pieces in progress for each worker

Job = TypeVar("Job")
Given = TypeVar("Given")
Made = TypeVar("Made")
GivenIn = TypeVar("GivenIn", contravariant=True)
MadeOut = TypeVar("MadeOut", covariant=True)


@dataclass(frozen=True)
class Engine:
    """Where images are worked on: in this process and those that it starts, or by workers of a Ray cluster."""

    name: str = "local"
    workers: int | None = None  # of the cluster; None: one for each of its processors

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise unknown("engine", self.name, ENGINES)
        require(self.workers is None or self.workers >= 1, f"--workers must be at least 1 but got {self.workers}.")


class Worker(Protocol[GivenIn, MadeOut]):
    """What an actor does: one piece after the other."""

    def do(self, piece: GivenIn) -> MadeOut: ...


def pieces_on_ray(
    kind: Callable[[Job], Worker[Given, Made]], job: Job, pieces: Iterable[Given], workers: int | None, again: str
) -> Iterator[Made]:
    """The results of workers of the ``kind`` for ``pieces``, in order.

    All machines must see the same files and have unspur. ``again`` tells the user how to continue if no worker is left.
    """
    with ray_cluster(workers) as ray:
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        pool: _Workers[Given, Made] = _Workers(ray, kind, job, count, again)
        try:
            for piece in pieces:
                pool.give(piece)
                if len(pool) > AHEAD * count:
                    yield pool.take()
            while len(pool):
                yield pool.take()
        finally:
            pool.end()


class _Workers(Generic[Given, Made]):
    """Workers, and the pieces that they have, in order."""

    def __init__(self, ray: Any, kind: Callable[[Job], Worker[Given, Made]], job: Job, count: int, again: str) -> None:
        self._ray, self._again = ray, again
        actor, shared = ray.remote(num_cpus=1, max_restarts=0)(kind), ray.put(job)
        self._living = {number: actor.remote(shared) for number in range(count)}
        self._under_way: deque[_UnderWay] = deque()

    def __len__(self) -> int:
        return len(self._under_way)

    def give(self, piece: Given) -> None:
        self._under_way.append(self._given(piece))

    def take(self) -> Made:
        """The result of the first piece, whichever worker does it in the end."""
        first = self._under_way.popleft()
        while True:
            try:
                made: Made = self._ray.get(first.answer)
                return made
            except self._ray.exceptions.RayActorError as error:
                self._living.pop(first.worker, None)
                if not self._living:
                    raise RunFailed(f"All workers of the cluster died ({_last_line(error)}); {self._again}.") from None
                first = self._given(first.piece)
            except self._ray.exceptions.RayError as error:
                raise RunFailed(f"A worker of the cluster failed ({_last_line(error)}); {self._again}.") from None

    def end(self) -> None:
        for actor in self._living.values():
            self._ray.kill(actor)

    def _given(self, piece: Given) -> _UnderWay:
        busy = [each.worker for each in self._under_way]
        worker = min(self._living, key=busy.count)
        return _UnderWay(piece, worker, self._living[worker].do.remote(piece))


class _UnderWay(NamedTuple):
    """A piece, and who has it."""

    piece: Any  # what the worker's ``do`` takes
    worker: int
    answer: Any  # Ray's reference to it


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1].strip().rstrip(".")
