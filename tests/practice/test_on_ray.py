"""Labels and audits from a Ray cluster: those of one process, also when a machine dies in the middle."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import torch

from unspur.data.base import Split
from unspur.data.images.listing import list_folder
from unspur.errors import UnspurError
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.collect import collect
from unspur.practice.audit.image_source import in_memory, listed
from unspur.practice.audit.stored import audit_into
from unspur.practice.engine import Engine
from unspur.practice.predict.predict import Wanted, predict_into

# One cluster for both, because starting it takes most of the time: each loses a machine after its first piece.
SCRIPT = """
import json, sys
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from unspur.data.images.listing import list_folder
from unspur.practice import engine
from unspur.practice.audit import collect, on_ray as audit_on_ray, stored
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.image_source import listed
from unspur.practice.predict import on_ray as predict_on_ray, predict
from unspur.practice.predict.row_file import RowFile

run, new, labels, photos, audits = sys.argv[1:]
engine.AHEAD = audit_on_ray.PIECE = predict_on_ray.PIECE = 1
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
killed = []

def kills(add):
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    def add_and_kill(self, made):
        add(self, made)
        if node in cluster.worker_nodes:
            killed.append(True)
            cluster.remove_node(node, allow_graceful=False)
    return add_and_kill

RowFile.add = kills(RowFile.add)
ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
two = engine.Engine("ray", 2)
done = predict.predict_into(Path(run), (new,), predict.Wanted(batch=1), Path(labels), engine=two)
collect._Known.add = kills(collect._Known.add)
quick = Settings(model=False, local=False)
source = listed(list_folder(Path(photos)))
stored.audit_into(Path(audits), "photos", source, target="folder", settings=quick, engine=two)
ray.shutdown()
cluster.shutdown()
print(json.dumps([done["images"], len(killed)]))
"""


def environment():
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex, "RAY_worker_niceness": "0"}
    soon = {"initial_delay_ms": "0", "period_ms": "500", "failure_threshold": "4"}  # a death is noticed in 2 s
    own |= {f"RAY_health_check_{name}": value for name, value in soon.items()}
    path = os.pathsep.join([str(Path("src").absolute()), os.environ.get("PYTHONPATH", "")])
    inherited = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    return inherited | own | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}


def without_times(folder):
    found = json.loads((folder / "findings.json").read_text())
    return json.dumps(found | {"seconds": None}).encode(), (folder / "suspects.csv").read_bytes()


def test_a_machine_that_is_killed_in_the_middle_changes_neither_rows_nor_findings(
    plain_run, new_photos, photos, tmp_path, only_ray
):
    alone, together, audits = tmp_path / "alone.csv", tmp_path / "together.csv", tmp_path / "audits"
    predict_into(plain_run, (str(new_photos),), Wanted(batch=1), alone)
    quick = Settings(model=False, local=False)
    folder = audit_into(audits, "photos", listed(list_folder(photos)), target="folder", settings=quick).folder
    own = without_times(folder)
    folder.rename(tmp_path / "own")  # the same folder again: findings.json names it in the next command
    command = [sys.executable, "-c", SCRIPT, plain_run, new_photos, together, photos, audits]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=400)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout.strip().splitlines()[-1]) == [14, 2]
    assert together.read_text() == alone.read_text()
    assert without_times(folder) == own and b"leaks" in own[0]


def test_a_cluster_writes_to_a_file(plain_run, new_photos):
    with pytest.raises(UnspurError, match="--engine ray writes to a file"):
        predict_into(plain_run, (str(new_photos),), Wanted(), None, engine=Engine("ray"))


def test_a_cluster_does_not_decode_what_is_in_memory(tmp_path):
    draw = torch.Generator().manual_seed(0)
    split = Split(torch.randint(256, (60, 3, 16, 16), dtype=torch.uint8, generator=draw), torch.arange(60) % 2)
    with pytest.raises(UnspurError, match="these images are in memory already; name a folder or a table"):
        collect(in_memory(split, ("a", "b")), engine=Engine("ray"))
