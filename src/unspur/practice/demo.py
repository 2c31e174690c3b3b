"""The main job on the embedded digits, with quick settings: train, show the shortcut, write a page."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from unspur.core.progress import ProgressBar, silent
from unspur.report.runs_page import write_report
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.result import Result

# Network and quick settings of each method in the demo: small enough for minutes, not the papers'.
QUICK = {
    "erm": ("small_cnn", ["erm.epochs=6", "erm.weight_decay=1e-4"]),  # as MaskTune's own ERM stage
    "masktune": ("small_cnn", ["erm.epochs=6"]),
    # The same plain training again. With few steps, the masks learn faster than in the paper and keep less. Chosen on
    # validation digits of which half conflict (data.conflict=0.5), not on test digits.
    "dcwp": (
        "small_cnn",
        [
            *("mining.training=sgd", "mining.training.epochs=1", "erm=sgd", "erm.epochs=6", "erm.weight_decay=1e-4"),
            *("masks.steps=100", "masks.lr=0.1", "masks.l1=1e-4", "masks.align=0.5", "masks.batch_size=128"),
            *("tuning.steps=50", "tuning.lr=3e-4", "tuning.align=0.5", "tuning.batch_size=128", "tuning.every=25"),
        ],
    ),
    # ULE repairs the network of its paper; small_cnn leans on the square even more with it than without. Its plain
    # training is its student's. lambda is chosen on the same validation digits.
    "ule": ("cnn2", ["training.epochs=2", "lam=0.005"]),
}


def run_demo(out: Path, *, progress: bool = False) -> tuple[Path, list[Result]]:
    """Run every method of the demo below ``out`` and write the page; returns its path and the results."""
    configs = [
        configure(method, "biased_mnist", arch, 0, ["data.base=mini", *settings])
        for method, (arch, settings) in QUICK.items()
    ]
    results = [run(config, out / "runs", resume=True, progress=progress) for config in configs]
    page = out / "report.html"
    with ProgressBar("report") if progress else nullcontext(silent) as shown:
        write_report([Run.create(out / "runs", config).folder for config in configs], page, None, shown)
    return page, results
