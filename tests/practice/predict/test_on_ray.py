"""Labels from a Ray cluster: those of one process, also when a machine dies in the middle."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from unspur.errors import RunFailed, UnspurError
from unspur.practice.predict import on_ray
from unspur.practice.predict.inputs import Named
from unspur.practice.predict.on_ray import _Workers
from unspur.practice.predict.predict import Engine, Wanted, predict_into


class Failed(Exception):
    """Stands for Ray's errors."""


class Died(Failed):
    """Stands for that of an actor's death."""


class Worker:
    """An actor that answers at once, and dies at its n-th piece."""

    def __init__(self, number, dies):
        self.label = SimpleNamespace(remote=self._label)
        self.number, self.dies, self.pieces = number, dies, 0

    def _label(self, images):
        self.pieces += 1
        dead = self.dies.get(self.number, 99) <= self.pieces
        return Died("the machine is gone.") if dead else [image.name for image in images]


def cluster(dies):
    """As much of Ray as the pool uses."""
    numbers = iter(range(99))

    def get(answer):
        if isinstance(answer, Exception):
            raise answer
        return answer

    return SimpleNamespace(
        remote=lambda **options: lambda kind: SimpleNamespace(remote=lambda job: Worker(next(numbers), dies)),
        put=lambda value: value,
        get=get,
        kill=lambda actor: None,
        exceptions=SimpleNamespace(RayActorError=Died, RayError=Failed),
    )


def names(pool, count):
    for number in range(count):
        pool.give([Named(str(number), "")])
    return [name for _ in range(count) for name in pool.take()]


@pytest.mark.parametrize("dies", [{}, {0: 1}, {0: 2, 2: 1}])
def test_rows_come_in_order_whoever_dies(dies):
    assert names(_Workers(cluster(dies), None, 3), 9) == [str(number) for number in range(9)]


def test_pieces_go_to_whoever_has_least_to_do():
    pool = _Workers(cluster({}), None, 3)
    assert names(pool, 9) and [worker.pieces for worker in pool._living.values()] == [3, 3, 3]


def test_when_all_have_died_it_is_said():
    with pytest.raises(
        RunFailed, match=r"All workers of the cluster died \(the machine is gone\); go on with --resume"
    ):
        names(_Workers(cluster({0: 1, 1: 1}), None, 2), 4)


SCRIPT = """
import json, os, sys
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from unspur.practice.predict import on_ray, predict
from unspur.practice.predict.row_file import RowFile

on_ray.PIECE, on_ray.AHEAD = 1, 1
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = cluster.add_node(num_cpus=1)
ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
add, killed = RowFile.add, []

def add_and_kill(self, rows):
    add(self, rows)
    if not killed:
        killed.append(True)
        cluster.remove_node(second, allow_graceful=False)

RowFile.add = add_and_kill
done = predict.predict_into(
    Path(sys.argv[1]), (sys.argv[2],), predict.Wanted(batch=1), Path(sys.argv[3]), engine=predict.Engine("ray", 2)
)
ray.shutdown()
cluster.shutdown()
print(json.dumps([done["images"], len(killed)]))
"""


def test_a_machine_that_is_killed_in_the_middle_costs_no_row(plain_run, new_photos, tmp_path):
    pytest.importorskip("ray")
    alone, together = tmp_path / "alone.csv", tmp_path / "together.csv"
    predict_into(plain_run, (str(new_photos),), Wanted(batch=1), alone)
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex, "RAY_worker_niceness": "0"}
    path = os.pathsep.join([str(Path("src").absolute()), os.environ.get("PYTHONPATH", "")])
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    environment |= own | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", SCRIPT, plain_run, new_photos, together]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout.strip().splitlines()[-1]) == [14, 1]
    assert together.read_text() == alone.read_text()


def test_a_cluster_writes_to_a_file_and_has_an_engine(plain_run, new_photos):
    with pytest.raises(UnspurError, match="--engine ray writes to a file"):
        predict_into(plain_run, (str(new_photos),), Wanted(), None, engine=Engine("ray"))
    with pytest.raises(UnspurError, match="Unknown engine 'spark'"):
        Engine("spark")
    with pytest.raises(UnspurError, match="--workers must be at least 1"):
        Engine("ray", 0)
    assert on_ray.PIECE * on_ray.AHEAD > 1  # more than one batch is under way
