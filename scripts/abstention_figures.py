"""What `unspur predict --coverage 0.9 --conformal 0.9` promises and keeps, with the audit of a shortcut and without.

    OMP_NUM_THREADS=1 python scripts/abstention_figures.py [--runs runs]

A model is trained on digits with blue squares (`biased_mnist` of the embedded digits, 1 % conflicting), audited as any
run, and labels its two test sets from files: no squares at all, and squares that are all on the wrong class. Nothing is
chosen on them. What has ended is read and not repeated. Writes results/abstention.json; `make results` then writes the
table of docs/abstention.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from PIL import Image

from unspur.core.files import write_json
from unspur.data.base import Split
from unspur.data.catalog import load
from unspur.practice.audit.stored import audit_into
from unspur.practice.audit.target import target_named
from unspur.practice.predict.calibrate import REMOVED, SWAPPED
from unspur.practice.predict.predict import Summary, Wanted, predict_into
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.version import commit

FILE = Path(__file__).parents[1] / "results" / "abstention.json"
SHARE, SEED = 0.9, 0
LIKE = {"original": REMOVED, "biased": SWAPPED}  # what validation images are made like each test set


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    runs = parser.parse_args().runs
    settings = ["data.base=mini", "data.conflict=0.01", "erm.epochs=3"]
    config = configure("erm", "biased_mnist", None, SEED, settings)
    run(config, runs, resume=True)
    folder = Run.create(runs, config).folder
    target = target_named(str(folder))
    audit = audit_into(runs / "audits", target.name, target.source, target=target.words, model=target.model).folder
    data = load("biased_mnist", base="mini", conflict=0.01)
    rows = []
    for name, like in LIKE.items():
        split = data.tests[name]
        images = write(split, runs / "test images" / name)
        for how in (None, audit):
            wanted = Wanted(coverage=SHARE, conformal=SHARE, audit=how)
            done = predict_into(folder, (str(images),), wanted, None)
            rows.append({"test": name, "audit": how is not None, **compared(done, split, data.classes, like)})
    write_json(
        FILE,
        {
            "command": "OMP_NUM_THREADS=1 python scripts/abstention_figures.py",
            "commit": commit(),
            "seeds": [SEED],
            "share": SHARE,
            "trained": f"unspur train erm biased_mnist {' '.join(f'--set {each}' for each in settings)}",
            "rows": rows,
        },
    )


def write(split: Split, folder: Path) -> Path:
    """The images as files, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(len(split)):
        Image.fromarray(split.x[number].permute(1, 2, 0).numpy()).save(folder / f"{number:05}.png")
    return folder


def compared(done: Summary, split: Split, classes: tuple[str, ...], like: str) -> dict[str, Any]:
    """What was promised for images ``like`` these, or for any where nothing is known of the cue, and what came."""
    rows, abstention, sets = done["rows"], done["abstention"], done["sets"]
    assert rows and abstention and sets
    right = [classes[label] for label in split.y.tolist()]
    answered = [row["label"] != label for row, label in zip(rows, right, strict=True) if not row["abstain"]]
    held = [label in row["set"] for row, label in zip(rows, right, strict=True)]
    promised = next((each for each in abstention["expected"] if each["images"] == like), abstention["expected"][0])
    return {
        "n": len(rows),
        "promised": {"answered": promised["coverage"], "error": promised["error"]},
        "came": {"answered": len(answered) / len(rows), "error": sum(answered) / len(answered) if answered else None},
        "sets_hold": sum(held) / len(held),
        "set_size": sum(len(row["set"]) for row in rows) / len(rows),
    }


if __name__ == "__main__":
    main()
