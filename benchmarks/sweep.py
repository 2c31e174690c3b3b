"""Runs per minute of a sweep with two single-threaded jobs over one, same runs. Bound: at least 1.8 on two cores.

python benchmarks/sweep.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from side_by_side import verdict

from unspur.runs.engines import processors
from unspur.runs.sweep import plan, sweep

RUNS = 6
SETTINGS = ["data.base=mini", "erm.epochs=2"]


def seconds(jobs: int) -> float:
    """How long the sweep takes from its start to its summary, with the start of its processes."""
    points = plan("erm", "biased_mnist", ["erm.lr=0.01,0.02"], range(RUNS // 2), "small_cnn", SETTINGS)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        found = sweep(points, Path(folder), jobs=jobs)
        taken = time.perf_counter() - begin
    if any(row["status"] != "done" for point in found["points"] for row in point["runs"]):
        raise SystemExit("A run failed, so that there is nothing to compare.")
    return taken


def main() -> bool:
    if processors() < 2:
        raise SystemExit("This needs two cores.")
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    ratios = []
    for _ in range(rounds):
        one, two = seconds(1), seconds(2)
        ratios.append(one / two)
        print(f"{RUNS} runs: one job {60 * RUNS / one:.1f} a minute, two jobs {60 * RUNS / two:.1f}")
    return verdict("two jobs / one job, runs per minute", statistics.median(ratios), at_least=1.8)


if __name__ == "__main__":
    sys.exit(not main())
