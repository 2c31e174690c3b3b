"""How many of the images that go against a shortcut are among an audit's suspects, and among as many, the surest.

    python scripts/audit_suspects.py [--sets petscapes,tagged,...] [--runs runs] [--data-dir DIR]

Each set is audited without group labels; its attributes then say which suspects are right: results/suspects.json.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import torch
from photographs import tagged
from recipe import SETS as PAIRS
from recipe import settings_of

from unspur.core.files import read_json, write_json
from unspur.data.base import aligned_with
from unspur.data.files.fetch import DataFiles
from unspur.parts.mining import mining_quality
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.sources import splits_source, train_words
from unspur.practice.audit.stored import SUSPECTS, audit_into
from unspur.runs.config import configure_data
from unspur.version import commit

FILE = Path("results/suspects.json")
DIGITS = {"colored_mnist": ("data.base=mini", "data.conflict=0.01"), "biased_mnist": ("data.base=mini",)}
SETS = ("petscapes", "tagged", *PAIRS, *DIGITS)


def row(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """What the suspects of one audit are worth."""
    if name in DIGITS or name == "petscapes":
        spec = configure_data(name, DIGITS.get(name, ()))
    else:
        spec = configure_data("folder", settings_of(name, args) if name in PAIRS else tagged(args.runs, args.data_dir))
    train = (data := spec.load(DataFiles(args.data_dir))).train
    source = splits_source(data, {"train": train})
    audit = audit_into(args.runs / "audits", name, source, target=train_words(spec), settings=Settings())
    with (audit.folder / SUSPECTS).open(encoding="utf-8", newline="") as file:
        numbers = torch.tensor([int(line["filename"].removeprefix("train/")) for line in csv.DictReader(file)])
    aligned = aligned_with(train, train)
    assert aligned is not None  # every set has attributes
    exceptions = int((~aligned).sum())
    return {
        "set": name,
        "verdict": audit.findings["verdict"],
        "sizes": {"train": len(train)},
        "exceptions": exceptions,
        "suspects": len(numbers),
        "all": mining_quality(numbers, train),
        "surest": mining_quality(numbers[:exceptions], train),
        "commit": commit(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--data-dir", type=Path)
    args = parser.parse_args()
    for name in args.sets.split(","):
        if name not in SETS:
            parser.error(f"there is no set {name}; there are {', '.join(SETS)}")
        done = row(name, args)
        stored = read_json(FILE) if FILE.exists() else {"command": "python scripts/audit_suspects.py", "rows": []}
        others = [old for old in stored["rows"] if old["set"] != name]
        write_json(FILE, {**stored, "rows": sorted([*others, done], key=lambda each: SETS.index(each["set"]))})


if __name__ == "__main__":
    main()
