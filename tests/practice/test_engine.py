"""Pieces of work on a Ray cluster come back in order, whoever dies; as much of Ray as the pool uses is imitated here.

tests/practice/test_on_ray.py has a real cluster.
"""

from types import SimpleNamespace

import pytest

from unspur.errors import RunFailed, UnspurError
from unspur.practice.engine import AHEAD, Engine, _Workers


class Failed(Exception):
    """Stands for Ray's errors."""


class Died(Failed):
    """Stands for that of an actor's death."""


class Actor:
    """It answers at once, and dies at its n-th piece."""

    def __init__(self, number, dies):
        self.do = SimpleNamespace(remote=self._do)
        self.number, self.dies, self.pieces = number, dies, 0

    def _do(self, piece):
        self.pieces += 1
        dead = self.dies.get(self.number, 99) <= self.pieces
        return Died("the machine is gone.") if dead else piece


def cluster(dies):
    numbers = iter(range(99))

    def get(answer):
        if isinstance(answer, Exception):
            raise answer
        return answer

    return SimpleNamespace(
        remote=lambda **options: lambda kind: SimpleNamespace(remote=lambda job: Actor(next(numbers), dies)),
        put=lambda value: value,
        get=get,
        kill=lambda actor: None,
        exceptions=SimpleNamespace(RayActorError=Died, RayError=Failed),
    )


def pool(count, dies):
    return _Workers(cluster(dies), None, None, count, "go on with --resume")


def made(workers, count):
    for number in range(count):
        workers.give(number)
    return [workers.take() for _ in range(count)]


@pytest.mark.parametrize("dies", [{}, {0: 1}, {0: 2, 2: 1}])
def test_results_come_in_order_whoever_dies(dies):
    assert made(pool(3, dies), 9) == list(range(9))


def test_pieces_go_to_whoever_has_least_to_do():
    workers = pool(3, {})
    assert made(workers, 9) and [worker.pieces for worker in workers._living.values()] == [3, 3, 3]


def test_when_all_have_died_it_is_said():
    with pytest.raises(
        RunFailed, match=r"All workers of the cluster died \(the machine is gone\); go on with --resume"
    ):
        made(pool(2, {0: 1, 1: 1}), 4)


def test_an_error_of_the_work_itself_is_not_tried_on_another_worker():
    workers = pool(2, {})
    workers.give(Failed("first line\nValueError: bad."))
    with pytest.raises(RunFailed, match=r"A worker of the cluster failed \(ValueError: bad\); go on"):
        workers.take()
    assert sum(worker.pieces for worker in workers._living.values()) == 1


def test_an_engine_has_a_name_and_workers():
    with pytest.raises(UnspurError, match="Unknown engine 'spark'"):
        Engine("spark")
    with pytest.raises(UnspurError, match="--workers must be at least 1"):
        Engine("ray", 0)
    assert AHEAD > 1  # a worker has its next piece before it has done the one before
