"""The main job on the embedded digits, with quick settings: train, audit, repair, and write two pages."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from unspur.core.files import write_text
from unspur.core.progress import ProgressBar, silent
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.stored import audit_into
from unspur.practice.audit.target import target_named
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
            *("masks.steps=100", "masks.start=1.5", "masks.lr=0.1", "masks.l1=1e-4"),
            *("masks.align=0.5", "masks.batch_size=128"),
            *("tuning.steps=50", "tuning.lr=3e-4", "tuning.align=0.5", "tuning.batch_size=128", "tuning.every=25"),
        ],
    ),
    # ULE repairs the network of its paper; with ULE, small_cnn leans on the square even more than without. The plain
    # training is that of ULE's student. lambda is chosen on the same validation digits.
    "ule": ("cnn2", ["training.epochs=2", "lam=0.005"]),
}


class Demo(NamedTuple):
    """What the demo wrote."""

    audit: Path  # the page that finds the shortcut
    report: Path  # the page that compares the methods
    results: list[Result]


def run_demo(out: Path, *, progress: bool = False) -> Demo:
    """Run every method of the demo below ``out``, audit the plain training, and write both pages."""
    configs = {
        method: configure(method, "biased_mnist", arch, 0, ["data.base=mini", *settings])
        for method, (arch, settings) in QUICK.items()
    }
    results = [run(configs["erm"], out / "runs", resume=True, progress=progress)]
    audit = out / "audit.html"
    _audit(Run.create(out / "runs", configs["erm"]).folder, out / "audits", audit, progress)
    rest = [config for method, config in configs.items() if method != "erm"]
    results += [run(config, out / "runs", resume=True, progress=progress) for config in rest]
    report = out / "report.html"
    with ProgressBar("report") if progress else nullcontext(silent) as shown:
        write_report([Run.create(out / "runs", config).folder for config in configs.values()], report, None, shown)
    return Demo(audit, report, results)


def _audit(run: Path, audits: Path, page: Path, progress: bool) -> None:
    """Audit the run's digits with its own model; the square does not move, so moving marks are not searched for."""
    target, settings = target_named(str(run)), Settings(local=False)
    with ProgressBar("audit") if progress else nullcontext(silent) as show:
        done = audit_into(
            audits, "erm", target.source, target=target.words, model=target.model, settings=settings, progress=show
        )
    write_text(page, done.page.read_text(encoding="utf-8"))
