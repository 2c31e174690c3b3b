"""A long haul: python tests/hostile/soak.py [--minutes 60] [--runs 200] [--ray] [--out FILE]

1. A sweep of many tiny runs, whose workers, and now and then the sweep itself, are killed at random moments; it is
   started again until all is done, and every file must be the same as of a sweep that nobody disturbed.
2. With --ray: the same on a Ray cluster of two nodes, one of which dies on the way.
3. One process that trains, scores, analyses and reports until the time is up: its open files do not grow, and its
   memory is printed.

The figures are printed, and with --out added to that file as a line.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from hostile.calling import call  # noqa: E402
from hostile.stored import contents, differences  # noqa: E402
from unspur.version import commit  # noqa: E402

TINY = ["--set", "data.train=200", "--set", "data.val=8", "--set", "data.test=20", "--set", "arch.width=16"]
EPOCHS = ["--set", "erm.epochs=5", "--set", "erm.batch_size=20"]
ATTEMPTS = 100
WARM = 20  # rounds after which nothing should grow any more


def sweep(out: Path, runs: int, *more: str) -> list[str]:
    seeds = ",".join(map(str, range(runs)))
    words = ["sweep", "erm", "parity", *TINY, *EPOCHS, "--grid", "erm.lr=0.1", "--seeds", seeds, "--out", str(out)]
    return [sys.executable, "-m", "unspur", *words, *more]


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | more


def children(parent: int) -> list[int]:
    """The workers that a sweep has started."""
    with contextlib.suppress(OSError):
        pids = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [int(pid) for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return []


@contextlib.contextmanager
def killing(process: subprocess.Popen[bytes], pause: float, draw: random.Random, killed: list[str]) -> Iterator[None]:
    """Kill a worker of ``process`` every ``pause`` seconds or so, and once in a while ``process`` itself."""
    over = threading.Event()

    def kill() -> None:
        while not over.wait(draw.uniform(0.4 * pause, 1.6 * pause)):
            whole = draw.random() < 0.1
            victims = [process.pid] if whole else children(process.pid)
            if victims and process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(victims), signal.SIGKILL)
                    killed.append("sweep" if whole else "worker")

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def disturbed(folder: Path, runs: int, pause: float, seed: int) -> dict[str, Any]:
    """Part 1: how many kills a sweep survived, and how many files are the same."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment()}
    subprocess.run(sweep(folder / "whole", runs, "--jobs", "2"), check=True, **quiet)
    draw, killed = random.Random(seed), list[str]()
    starts, code = 0, None
    while code != 0 and starts < ATTEMPTS:
        starts += 1
        with (
            subprocess.Popen(sweep(folder / "killed", runs, "--jobs", "2"), **quiet) as process,
            killing(process, pause, draw, killed),
        ):
            code = process.wait()
    return {"runs": runs, "kills": len(killed), "starts": starts, **compared(folder / "whole", folder / "killed")}


def compared(one: Path, other: Path) -> dict[str, int]:
    """How many files of both sweeps are the same."""
    own, theirs = (runs_below(folder) for folder in (one, other))
    differ = differences(own, theirs)
    for name in differ[:5]:
        print(f"differs: {name}")
    return {"files": len(own), "equal": len(own) - len(differ)}


def runs_below(folder: Path) -> dict[str, Any]:
    found = {}
    for run in sorted(path for path in folder.iterdir() if (path / "config.json").exists()):
        found |= {f"{run.name}/{name}": content for name, content in contents(run).items()}
    return found


def on_ray(folder: Path, runs: int) -> dict[str, Any]:
    """Part 2: a cluster of a head without processors and two nodes with one each, of which one dies."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    quiet["env"] = environment(RAY_ADDRESS=cluster.address)
    starts = 0
    try:
        with subprocess.Popen(sweep(folder / "ray", runs, "--engine", "ray"), **quiet) as process:
            starts += 1
            while process.poll() is None and len(list((folder / "ray").glob("*/result.json"))) < runs // 4:
                time.sleep(0.2)
            cluster.remove_node(nodes[0], allow_graceful=False)
            code = process.wait()
        while code and starts < 5:
            starts += 1
            code = subprocess.run(sweep(folder / "ray", runs, "--engine", "ray"), check=False, **quiet).returncode
    finally:
        cluster.shutdown()
    subprocess.run(sweep(folder / "plain", runs, "--jobs", "2"), check=True, **quiet | {"env": environment()})
    return {
        "ray_runs": runs,
        "nodes_died": 1,
        "ray_starts": starts,
        **_named(compared(folder / "plain", folder / "ray")),
    }


def _named(counts: dict[str, int]) -> dict[str, int]:
    return {f"ray_{name}": count for name, count in counts.items()}


def steady(folder: Path, until: float) -> dict[str, Any]:
    """Part 3: open files and memory of one process after a while, and at the end."""
    figures, rounds = list[tuple[int, float]](), 0
    while time.monotonic() < until or rounds < 2 * WARM:
        run = ["train", "erm", "parity", *TINY, *EPOCHS, "--seed", str(rounds), "--out", str(folder / "runs")]
        made = json.loads(call([*run, "--json"]).out)
        stored = next((folder / "runs").glob(f"*-{made['key']}"))
        for arguments in (
            ["evaluate", str(stored), "--coverage", "0.5"],
            ["analyze", str(stored), "--samples", "4"],
            ["report", str(stored), "--out", str(folder / "page.html")],
            ["train", "erm", "parity", "--set", "erm.lr=-1"],
        ):
            done = call(arguments)
            assert not done.raised and done.code in (0, 2), done
        rounds += 1
        gc.collect()
        figures.append((len(os.listdir("/proc/self/fd")), memory()))
    (files, start), (files_end, end) = figures[WARM], figures[-1]
    return {"rounds": rounds, "open_files": [files, files_end], "memory_mb": [round(start, 1), round(end, 1)]}


def memory() -> float:
    """What this process holds, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--pause", type=float, default=5, help="seconds from one kill to the next, on average")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ray", action="store_true", help="also on a Ray cluster, one of whose nodes dies")
    parser.add_argument("--out", type=Path, help="a file that the figures are added to as a line")
    wanted = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = disturbed(folder, wanted.runs, wanted.pause, wanted.seed)
        print(f"A sweep of {found['runs']} runs survived {found['kills']} kills in {found['starts']} starts: "
              f"{found['equal']} of {found['files']} files are the same.", flush=True)  # fmt: skip
        if wanted.ray:
            found |= on_ray(folder, max(8, wanted.runs // 10))
            print(f"On Ray, {found['ray_runs']} runs and one dead node: {found['ray_equal']} of {found['ray_files']} "
                  "files are the same.", flush=True)  # fmt: skip
        found |= steady(folder, began + 60 * wanted.minutes)
        print(f"{found['rounds']} rounds in one process: {found['open_files'][0]} open files and "
              f"{found['memory_mb'][0]} MB after {WARM}, {found['open_files'][1]} and {found['memory_mb'][1]} MB "
              "at the end.")  # fmt: skip
    minutes = round((time.monotonic() - began) / 60, 1)
    if wanted.out:
        line = {"hunt": "soak", "what": f"{minutes} minutes", "minutes": minutes, **found, "commit": commit()}
        with wanted.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    same = found["equal"] == found["files"] and found.get("ray_equal") == found.get("ray_files")
    return 0 if same and found["open_files"][1] <= found["open_files"][0] else 1


if __name__ == "__main__":
    sys.exit(main())
