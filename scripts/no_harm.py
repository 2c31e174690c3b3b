"""Repairs of sets without a known shortcut: what they do to the model, written as they end.

    UNSPUR_DATA=DIR python scripts/no_harm.py [--out repairs] [--only NAME]

Pairs of CIFAR-10 (JPEG) classes, 600 images each, enlarged to 96 pixels, whose backgrounds differ as they do in any
photographs; and digits. The repair audits, tries and chooses as `unspur repair FOLDER` does, on a third of the images
held out for it (data.val=0.3). Accuracy is that on the test images, which nothing is chosen by. A repair that has ended
is read and not repeated. Writes results/no-harm.json.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from unspur.core.files import read_json, write_json
from unspur.core.progress import ProgressBar
from unspur.practice.repair.repair import RepairSettings, repair
from unspur.practice.repair.state import RepairJSON
from unspur.practice.repair.target import RepairTarget, repair_target
from unspur.runs.folder import Run
from unspur.version import commit

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from audit_sets import base_images, write

FILE = Path(__file__).parents[1] / "results" / "no-harm.json"
EACH, SEED, SETTINGS = 600, 2, ("data.size=96", "data.val=0.3")
PAIRS = {
    "planes, cars": "cifar 0 1",
    "birds, frogs": "cifar 2 6",
    "cats, dogs": "cifar 3 5",
    "deer, horses": "cifar 4 7",
    "planes, ships": "cifar 0 8",
    "cars, trucks": "cifar 1 9",
    "cats, birds": "cifar 3 2",
    "dogs, horses": "cifar 5 7",
    "frogs, ships": "cifar 6 8",
    "deer, trucks": "cifar 4 9",
}
DIGITS = {"digits": ("mnist", ["data.base=mini"])}


def target(case: str, out: Path, data_dir: Path) -> RepairTarget:
    """What is repaired: digits, or a pair that is written as files first."""
    if case in DIGITS:
        return repair_target(*DIGITS[case], data_dir)
    folder = out / "pairs" / case.replace(", ", "-")
    if not folder.exists():
        write(base_images(PAIRS[case], EACH), None, 0.0, folder, SEED)
    return repair_target(str(folder), SETTINGS, data_dir)


def row(case: str, state: RepairJSON) -> dict[str, Any]:
    """What the table says of a repair."""
    assert state["baseline"] is not None
    before, after = (_accuracy(folder) for folder in (state["baseline"]["run"], state["run"] or ""))
    return {
        "case": case,
        "commit": commit(),
        "verdict": state["verdict"],
        "tried": [{"name": each["name"], "status": each["status"]} for each in state["tried"]],
        "chosen": state["chosen"],
        "before": before,
        "after": after,
        "seconds": state["seconds"],
    }


def _accuracy(folder: str) -> float:
    (test,) = Run.open(Path(folder)).finished()["tests"].values()
    return test["accuracy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("repairs"))
    parser.add_argument("--only", choices=[*PAIRS, *DIGITS])
    options = parser.parse_args()
    data_dir = Path(os.environ["UNSPUR_DATA"])
    for case in [options.only] if options.only else [*PAIRS, *DIGITS]:
        repaired = target(case, options.out, data_dir)
        with ProgressBar(case) as progress:
            _, state = repair(repaired, options.out, settings=RepairSettings(), data_dir=data_dir, progress=progress)
        stored = read_json(FILE) if FILE.exists() else {"command": "python scripts/no_harm.py", "rows": []}
        others = [old for old in stored["rows"] if old["case"] != case]
        done = row(case, state)
        write_json(FILE, {**stored, "rows": [*others, done]})
        print(case, done["verdict"], done["chosen"], f"{done['before']:.4f} {done['after']:.4f}", flush=True)


if __name__ == "__main__":
    main()
