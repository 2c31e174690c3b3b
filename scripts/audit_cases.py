"""Audits of real sets, with their quick models: verdict, findings and reliance, written as audits end.

    UNSPUR_DATA=DIR python scripts/audit_cases.py [--out audits] [--only NAME]

`petscapes` and `isic` have real shortcuts; pairs of CIFAR-10 (JPEG) classes, 1,000 images each, are as they come;
digits are the embedded ones, with the blue square of `biased_mnist` and without. Pages stay in the folder of audits:
they show images that are not ours to publish. An audit that has ended is read and not repeated.
Writes results/audit-cases.json; `make results` then writes the table.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from unspur.core.files import read_json, write_json
from unspur.core.progress import ProgressBar
from unspur.practice.audit.findings import AuditJSON, FindingJSON
from unspur.practice.audit.stored import audit_into
from unspur.practice.audit.target import Target, target_named
from unspur.version import commit

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from audit_sets import base_images, write

FILE = Path(__file__).parents[1] / "results" / "audit-cases.json"
EACH, SEED = 1000, 2
PAIRS = {
    "cats, dogs": "cifar 3 5",
    "planes, ships": "cifar 0 8",
    "deer, horses": "cifar 4 7",
    "frogs, ships": "cifar 6 8",
}
SETS: dict[str, tuple[str, list[str]]] = {
    "petscapes": ("petscapes", []),
    "isic": ("isic", []),
    "digits": ("mnist", ["data.base=mini"]),
    "digits with squares": ("biased_mnist", ["data.base=mini"]),
}


def target(case: str, out: Path, data_dir: Path) -> Target:
    """What is audited: a set of the catalogue, or a pair that is written as files first."""
    if case in SETS:
        return target_named(*SETS[case], data_dir)
    folder = out / "pairs" / case.replace(", ", "-")
    if not folder.exists():
        write(base_images(PAIRS[case], EACH), None, 0.0, folder, SEED)
    return target_named(str(folder), (), data_dir)


def row(case: str, found: AuditJSON) -> dict[str, Any]:
    """What the table says of an audit."""
    return {
        "case": case,
        "commit": commit(),
        "images": found["images"],
        "verdict": found["verdict"],
        "sentence": found["sentence"],
        "seconds": found["seconds"],
        "findings": [_short(finding) for finding in found["findings"]],
    }


def _short(finding: FindingJSON) -> dict[str, Any]:
    kept = ("what", "grade", "tells_label", "separation", "reliance", "suspects", "accuracy_on_suspects")
    return {key: finding[key] for key in kept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("audits"))
    parser.add_argument("--only", choices=[*SETS, *PAIRS])
    options = parser.parse_args()
    data_dir = Path(os.environ["UNSPUR_DATA"])
    for case in [options.only] if options.only else [*SETS, *PAIRS]:
        looked_at = target(case, options.out, data_dir)
        with ProgressBar(case) as progress:
            done = audit_into(options.out, looked_at.name, looked_at.source, target=looked_at.words, progress=progress)
        stored = read_json(FILE) if FILE.exists() else {"command": "python scripts/audit_cases.py", "rows": []}
        others = [old for old in stored["rows"] if old["case"] != case]
        write_json(FILE, {**stored, "rows": [*others, row(case, done.findings)]})
        print(f"{case}: {done.findings['sentence']} ({done.page})", flush=True)


if __name__ == "__main__":
    main()
