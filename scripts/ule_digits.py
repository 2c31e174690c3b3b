"""ULE from scratch on digits: Table 1's runs and mixed architectures, with what the shortcut still does to each.

    python scripts/ule_digits.py [--only TEXT] [--seeds 0,1,2] [--runs runs]

Accuracy alone does not tell whether a network leaves the shortcut alone: matching gradients is local. So every network,
the student's too, is also shown the same test images with and without the shortcut (metrics/shortcut.py). Finished runs
are not done again; results/ule-digits.json is written at the end, from all that are finished.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unspur.core.files import write_json
from unspur.data.files.fetch import DataFiles
from unspur.evaluation.scores import predict
from unspur.papers.reproduce import parse_seeds
from unspur.papers.ule import EPOCHS, TABLE_1
from unspur.report.context import DataContext, RunContext
from unspur.report.sections.shortcut_effect import effects_of
from unspur.runs.config import Config, configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run

FILE = Path("results/ule-digits.json")
PAIRS = (("cnn2", "cnn3"), ("cnn3", "cnn2"))  # teacher and student


def wanted(seed: int) -> Iterator[tuple[str, Config]]:
    """Table 1's runs, the default lambda without a shortcut, then mixed pairs, by saliency and by activations (3.1)."""
    for setup in dict.fromkeys(setup for cell in TABLE_1.cells for setup in cell.setups):
        yield f"{setup.method} on {setup.data}", setup.config(seed)
    yield "ule on mnist, default lambda", configure("ule", "mnist", "cnn2", seed, [EPOCHS])
    for compare in ("saliency", "activations"):
        for teacher, student in PAIRS:
            own = [EPOCHS, f"student={student}", f"compare={compare}"]
            label = f"ule on mnist_sc, {compare}, teacher {teacher}, student {student}"
            yield label, configure("ule", "mnist_sc", teacher, seed, own)


def row(label: str, stored: Run, result: Mapping[str, Any]) -> dict[str, Any]:
    """What each network of a finished run does on held-out images, which have the shortcut, and on each test set."""
    data = stored.config.data.load(DataFiles())
    context = RunContext(stored, label, DataContext(stored.config.data, data))
    scores = {name: stage["tests"] for name, stage in result["stages"].items()} | {"result": result["tests"]}
    held_out = predict(context.model(), data.val).argmax(1) == data.val.y
    return {
        "what": label,
        "seed": stored.config.seed,
        "accuracy": {name: {test: own["accuracy"] for test, own in tests.items()} for name, tests in scores.items()},
        "held_out_accuracy": float(held_out.double().mean()),
        "effect": {e.on: {name: own._asdict() for name, own in e.rows} for e in effects_of(context)},
        **{key: result[key] for key in ("seconds", "commit", "key")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="do the runs whose description has this text; read the others")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    arguments = parser.parse_args()
    seeds = parse_seeds(arguments.seeds)
    configs = [(label, config) for seed in seeds for label, config in wanted(seed)]
    for label, config in configs:
        if arguments.only in label:
            run(config, arguments.runs, resume=True, progress=True)
    finished = [(label, Run.create(arguments.runs, config)) for label, config in configs]
    results = [(label, stored, stored.result()) for label, stored in finished]
    write_json(FILE, [row(*each) for each in results if each[2] and each[2]["status"] == "done"])


if __name__ == "__main__":
    main()
