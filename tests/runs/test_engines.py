"""Sweeps in real processes and on a real Ray: what they share, and what happens when one of them dies."""

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

import unspur
from unspur.cli.main import main
from unspur.errors import UnspurError
from unspur.runs.config import configure
from unspur.runs.engines import Job, _start, local, work
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.sweep import plan, sweep

TINY = ["arch.width=8", "data.train=200", "data.test=100", "data.val=0"]
LONG = [*TINY, "erm.epochs=100000"]
SHORT = [*TINY, "erm.epochs=2"]
PATIENCE = 300  # seconds after which a process that hangs is a failure


def config(settings, seed=0):
    return configure("erm", "parity", "fcn", seed, settings)


def job(out, made):
    return Job(made.to_json(), str(out))


def kill_when(ready, victims):
    """Kill what ``victims`` finds as soon as ``ready`` holds."""

    def watch():
        for _ in range(2400):
            if ready():
                for pid in victims():
                    os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.05)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_a_full_disk_is_no_error_in_the_program(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere/.lock")

    monkeypatch.setattr("unspur.runs.engines.run", full)
    outcome = work(Job(configure("erm", "moon_star").to_json(), str(tmp_path)))
    assert outcome == (
        "failed",
        "The run stopped: No space left on device; free what is short and go on with --resume.",
    )


def test_a_killed_process_costs_its_own_run_and_no_other(tmp_path):
    endless, quick = config(LONG), config(SHORT)
    begun = Run.create(tmp_path, endless).folder / "metrics.jsonl"
    watch = kill_when(begun.exists, lambda: [child.pid for child in multiprocessing.active_children()])
    ended = dict(local([job(tmp_path, endless), job(tmp_path, quick)], 1))
    watch.join()
    assert ended[0].status == "failed" and "killed by SIGKILL" in ended[0].reason
    assert ended[1].status == "done"
    failed = json.loads((begun.parent / "result.json").read_text())
    assert failed["status"] == "failed" and "killed by SIGKILL" in failed["reason"]
    assert Run.create(tmp_path, quick).result()["threads"] == 1


def test_a_process_that_dies_between_two_runs_is_replaced(tmp_path, monkeypatch, copies):
    runs = [config([*TINY, f"erm.lr={lr}"]) for lr in (0.1, 0.2)]
    started = []

    def start():
        started.append(_start())
        return started[-1]

    monkeypatch.setattr("unspur.runs.engines._start", start)
    ended = []
    for number, outcome in local([job(tmp_path, made) for made in runs], 1):
        ended.append((number, outcome.status))
        if number == 0:
            started[0][0].kill()
            started[0][0].join()
    for process, _ in started:  # a copy holds this end of its connection too, and would wait for ever
        process.kill()
        process.join()
    assert ended == [(0, "done"), (1, "done")] and len(started) == 2


def command(out, *more):
    settings = [part for setting in [*TINY, "erm.epochs=60"] for part in ("--set", setting)]
    grid = ["--grid", "erm.lr=0.1,0.2,0.3", "--seeds", "0", "--jobs", "1", "--out", str(out), "--json"]
    return [sys.executable, "-m", "unspur", "sweep", "erm", "parity", *grid, *settings, *more]


def environment():
    path = os.pathsep.join([str(Path(unspur.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def results(out: Path):
    return {path: path.stat().st_mtime_ns for path in out.glob("*/result.json")}


def test_a_killed_sweep_takes_its_processes_with_it_and_goes_on_later(tmp_path, monkeypatch, capfd):
    process = subprocess.Popen(command(tmp_path), env=environment(), stdout=subprocess.DEVNULL)
    kill_when(lambda: results(tmp_path), lambda: [process.pid]).join()
    assert process.wait() == -signal.SIGKILL
    time.sleep(2)  # long enough for the next run to end, were its process still there
    before = results(tmp_path)
    assert 1 <= len(before) < 3
    monkeypatch.setattr(sys, "argv", command(tmp_path)[2:])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    found = json.loads(capfd.readouterr().out)  # and nothing else is on stdout, of its processes neither
    assert [row["status"] for point in found["points"] for row in point["runs"]] == ["done"] * 3
    assert before.items() <= results(tmp_path).items()  # what had ended was not repeated


def test_a_mistake_ends_the_command_with_2_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", command(tmp_path / "out", "--grid", "erm.rate=1")[2:])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 2 and set(json.loads(said.out)) == {"error", "see"}
    assert said.err.startswith("Error: Unknown key 'erm.rate'. Did you mean 'erm.")
    assert not (tmp_path / "out").exists()


def test_ray_that_is_not_installed_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnspurError, match=r"Ray is not installed; install it with pip install 'unspur\[ray\]'"):
        sweep(plan("erm", "parity", ["erm.lr=0.1"], [0], "fcn", SHORT), tmp_path, engine="ray")


@pytest.mark.filterwarnings("ignore")  # those of Ray itself
@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "127.0.0.1:abc", "localhost:"])
def test_a_ray_cluster_that_cannot_be_reached_is_told(tmp_path, monkeypatch, address):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(UnspurError, match=rf"No Ray cluster can be reached at RAY_ADDRESS={address} \("):
        sweep(plan("erm", "parity", ["erm.lr=0.1"], [0], "fcn", SHORT), tmp_path, engine="ray")


def ray_environment(**more):
    """For clusters of the test's own, each in a process of its own: Ray reads its settings once, when it is imported.

    Newer Rays demand a token and would keep theirs in the user's home, so the test makes one. They also run their
    workers at niceness 15, which would make the test wait for whatever else runs here.
    """
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex, "RAY_worker_niceness": "0"}
    return {name: value for name, value in environment().items() if name != "RAY_ADDRESS"} | own | more


def sweep_on_ray(out, env, *grid, code=0):
    """The summary that `unspur sweep --engine ray` prints before it ends with ``code``."""
    arguments = [part for setting in TINY for part in ("--set", setting)]
    arguments += [part for axis in grid for part in ("--grid", axis)]
    more = ["--seeds", "0", "--jobs", "1", "--engine", "ray", "--out", str(out), "--json"]
    command = [sys.executable, "-m", "unspur", "sweep", "erm", "parity", "--arch", "fcn", *arguments, *more]
    try:
        ended = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        pytest.fail(f"The sweep on Ray had not ended after {PATIENCE} seconds: {' '.join(command)}")
    assert ended.returncode == code
    return json.loads(ended.stdout)


def test_ray_writes_the_same_folders_and_survives_a_death(tmp_path, only_ray):
    endless = Run.create(tmp_path / "ray", config([*TINY, "erm.lr=0.1", "erm.epochs=100000"])).folder
    watch = kill_when((endless / "metrics.jsonl").exists, lambda: holders(endless / ".lock"))
    found = sweep_on_ray(tmp_path / "ray", ray_environment(), "erm.lr=0.1,1e30", "erm.epochs=2,100000", code=1)
    watch.join()
    rows = [point["runs"][0] for point in found["points"]]
    assert [row["status"] for row in rows] == ["done", "failed", "diverged", "diverged"]
    assert "died on the cluster" in rows[1]["reason"]
    for rate in ("0.1", "1e30"):
        made = config([*SHORT, f"erm.lr={rate}"])
        alone = run(made, tmp_path / "alone")
        folder = Run.create(tmp_path / "ray", made).folder
        result = json.loads((folder / "result.json").read_text())
        assert {**result, "seconds": 0, "threads": 1} == {**alone, "seconds": 0, "threads": 1}
        assert files(folder) == files(tmp_path / "alone" / folder.name)


CLUSTER = """
import ray
context = ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
print(context.address_info["gcs_address"], flush=True)
input()
"""


USED = """
import os
from unspur.runs.engines import ray_cluster
os.environ["RAY_ADDRESS"] = input()  # by then it has imported torch, while the cluster started
with ray_cluster(4) as ray:
    ray.get(ray.remote(num_cpus=1)(lambda: os.getpid()).remote())
    used = ray.get_runtime_context().gcs_address, int(ray.cluster_resources()["CPU"])
print(*used)
"""


def test_a_ray_that_runs_is_used_and_left_running(only_ray):
    env = ray_environment()
    cluster, user = (
        subprocess.Popen(
            [sys.executable, "-c", script], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for script in (CLUSTER, USED)
    )
    try:
        address = cluster.stdout.readline().strip()
        found, _ = user.communicate(f"{address}\n", timeout=PATIENCE)
        assert user.returncode == 0
        assert found == f"{address} 1\n"  # its one processor, and not four of a new one
        assert cluster.poll() is None
    finally:
        user.kill()
        cluster.communicate("\n")


def files(folder: Path):
    return {path.name for path in folder.iterdir()}


def holders(path: Path):
    """The processes that have ``path`` open."""
    found = []
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(link.resolve() == path.resolve() for link in folder.iterdir()):
                found.append(int(folder.parent.name))
        except (PermissionError, FileNotFoundError):
            continue
    return found
