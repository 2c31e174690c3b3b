"""Processes that train together end together, and the one that waits for them says why."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from runs import rank_work
from unspur.errors import RunFailed
from unspur.runs.supervisor import together


def done_by(work):
    return together(2, rank_work.fabric, work, rank_work.reason)


def test_the_first_of_the_processes_answers_for_all(copies):
    assert done_by(rank_work.numbers) == (0, 2)


@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        (rank_work.killed, "The run stopped: process 2 of 2 was killed by SIGKILL.*; go on with --resume."),
        (rank_work.full_disk, "^reason: .Errno 28. No space left on device$"),
    ],
)
def test_the_cause_is_named_and_not_the_broken_connection_and_nobody_is_left(copies, work, sentence):
    with pytest.raises(RunFailed, match=sentence):
        done_by(work)
    assert not multiprocessing.active_children()


PATIENCE = 300  # seconds


def ranks_of(parent: int) -> set[int]:
    """The processes that ``parent`` started to train in."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def alive(pid: int) -> bool:
    """Whether a process is there, and not only waiting to be buried by whoever adopted it."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("end", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGKILL, -signal.SIGKILL, marks=pytest.mark.hostile)],
)
def test_processes_that_train_together_do_not_outlive_the_command(tmp_path, end, code):
    endless = ["--set", "erm.epochs=100000", "--set", "data.train=100", "--set", "data.val=0", "--set", "arch.width=8"]
    command = ["train", "erm", "parity", *endless, "--devices", "2", "--out", str(tmp_path)]
    path = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    started = {"env": environment, "stderr": subprocess.PIPE}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # what tests in the background are deaf to
    with subprocess.Popen([sys.executable, "-m", "unspur", *command], preexec_fn=heard, **started) as parent:
        given_up = threading.Timer(PATIENCE, parent.kill)  # so that a deaf command fails this and does not hang it
        given_up.start()
        while not (saved := list(tmp_path.glob("*/checkpoints/erm.safetensors"))):
            assert parent.poll() is None, parent.stderr.read()
            time.sleep(0.1)
        ranks = ranks_of(parent.pid)
        assert len(ranks) == 2
        parent.send_signal(end)  # to this process alone, as a scheduler does
        said = parent.stderr.read()  # to its end: also the ranks write there
        given_up.cancel()
        assert parent.wait() == code and b"Traceback" not in said
    assert not [rank for rank in ranks if alive(rank)]
    before = saved[0].stat().st_mtime_ns
    time.sleep(0.3)
    assert saved[0].stat().st_mtime_ns == before and not (saved[0].parents[1] / "result.json").exists()


def test_a_run_whose_process_dies_is_failed_and_goes_on_later(tmp_path, monkeypatch, copies):
    from unspur.runs import experiment
    from unspur.runs.config import configure
    from unspur.runs.folder import Run

    config = configure("erm", "parity", "fcn", 0, ["data.train=64", "data.val=0", "data.test=20", "erm.epochs=1"])
    monkeypatch.setattr(experiment, "_train_and_score", rank_work.end_at_once)
    with pytest.raises(RunFailed, match=r"process [12] of 2 ended with exit code 3"):
        experiment.run(config, tmp_path, devices=2)
    folder = Run.create(tmp_path, config).folder
    failed = json.loads((folder / "result.json").read_text())
    assert failed["status"] == "failed" and failed["devices"] == 2 and "exit code 3" in failed["reason"]
    monkeypatch.undo()
    assert experiment.run(config, tmp_path)["status"] == "done"
