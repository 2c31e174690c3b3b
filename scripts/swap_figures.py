"""Swap with the cue that the audit found, beside plain training: written row by row to results/swap.json.

    python scripts/swap_figures.py [--sets colored,squares,petscapes,isic,tagged] [--methods swap,erm] [--seeds 0,1,2]
                                   [--runs runs] [--data-dir DIR]

Each set is audited once (no group labels, its own quick model) and trained on with the cues that the audit kept; where
the audit kept none, the row says so. Rows that are there already are not made again. Nothing is chosen on test data.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from photographs import tagged
from torch import nn
from torch.nn import functional

from unspur.core.files import read_json, write_json
from unspur.data.base import Split, aligned_with, groups_of
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError
from unspur.models.base import head_of
from unspur.papers.reproduce import parse_seeds
from unspur.parts.features import features_of
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.sources import splits_source, train_words
from unspur.practice.audit.stored import StoredAudit, audit_into
from unspur.runs.config import configure, configure_data
from unspur.runs.defaults import fitted, given_keys
from unspur.runs.estimate import prepared, size_of
from unspur.runs.experiment import run
from unspur.train.session import Session
from unspur.version import commit

FILE = Path("results/swap.json")
AUDITED = 2000  # digits


class Case(NamedTuple):
    """A data set with a planted or known shortcut."""

    name: str
    data: str
    settings: tuple[str, ...] = ()
    local: bool = False  # whether the audit looks for marks that move, which it does not grade in drawings


COUNTS = {"0.5 %": 249, "1 %": 491, "2 %": 986, "5 %": 2449}  # conflicting of 55,000, as DCWP's tables count
SETS: dict[str, list[Case]] = {
    "mini": [
        Case("Colored MNIST (embedded digits), 0.5 %", "colored_mnist", ("data.base=mini", "data.conflict=0.005"))
    ],
    "colored": [
        Case(f"Colored MNIST, {share}", "colored_mnist", (f"data.conflict_count={count}",))
        for share, count in COUNTS.items()
    ],
    "squares": [
        Case("Biased MNIST, one square", "biased_mnist"),
        Case("Biased MNIST, two squares", "biased_mnist", ("data.squares=2",)),
    ],
    "petscapes": [Case("petscapes", "petscapes", local=True)],
    "isic": [Case("isic", "isic", local=True)],
    "tagged": [
        Case("tagged", "folder"),
        Case("tagged, before it was", "folder"),
    ],  # their roots are made when asked for
}
FROZEN = ("petscapes", "isic", "folder")  # sets of which the head alone is trained
EPOCHS = "3"  # of all methods on digits: Adam, one cycle to 4e-3, batches of 256
PLAIN = ("erm=adam", "erm.lr=4e-3", f"erm.epochs={EPOCHS}", "erm.batch_size=256", "erm.schedule=wsd")
ONE_CYCLE = ("erm.schedule.warmup=0.3", "erm.schedule.decay=0.7")


def methods(case: Case, audited: StoredAudit) -> dict[str, tuple[str, tuple[str, ...]]]:
    """What is trained on a set, by the name of its row."""
    cues = audited.findings["cues"]
    swap = (f"cues={','.join(cues)}",)
    if case.data in FROZEN:
        rows = {"erm": ("erm", ("arch.freeze=backbone",))}
        return {**rows, "swap": ("swap", (*swap, "layers=last"))} if cues else rows
    return {**({"swap": ("swap", swap)} if cues else {}), "erm": ("erm", (*PLAIN, *ONE_CYCLE))}


def frozen_row(
    case: Case, name: str, method: str, own: tuple[str, ...], seed: int, audited: StoredAudit, args: Any
) -> Any:
    """A last layer, scored on features that are computed once for all rows: what `unspur train` gives, sooner."""
    settings = [*case.settings, *own]
    config = configure(method, case.data, None, seed, settings)
    files = DataFiles(args.data_dir)
    config = fitted(config, given_keys(config.method, None, settings), size_of(config, files))
    data = config.data.load(files)
    began = time.monotonic()
    fit = config.method.fit(config.arch.build(data, seed=seed), data.train, val=data.val, seed=seed)
    # swap's plain head has the L2 that suits it best, which that of `erm` has not
    models = {"tests": fit.model} | ({"before": fit.stages[fit.baseline.stage]} if fit.baseline else {})
    scores = {
        key: {name: _scores(model, data.train, test, name) for name, test in data.tests.items()}
        for key, model in models.items()
    }
    return {
        **_common(case, name, method, settings, seed, audited, args.runs),
        "status": "done",
        **scores,
        "chosen_l2": fit.facts.get("chosen_l2"),
        "strengths": fit.facts.get("strengths"),
        "sizes": {"train": len(data.train), "val": len(data.val), **{t: len(test) for t, test in data.tests.items()}},
        "seconds": round(time.monotonic() - began, 1),
    }


def _scores(model: nn.Module, train: Split, test: Split, name: str) -> dict[str, Any]:
    head = head_of(model)
    logits = functional.linear(features_of(model, test, Session(), name), head.weight, head.bias)
    right, groups = logits.argmax(1) == test.y, groups_of(test)
    aligned = aligned_with(train, test) if test.attributes else None
    misled = None if aligned is None or bool(aligned.all()) else right[~aligned]
    by_group = {
        " ".join(map(str, key)): float(right[groups.id == number].float().mean())
        for number, key in enumerate(groups.keys)
    }
    return {
        "accuracy": float(right.float().mean()),
        "mean_group_accuracy": sum(by_group.values()) / len(by_group),
        "worst_group_accuracy": min(by_group.values()),
        "conflicting_accuracy": None if misled is None else float(misled.float().mean()),
        "groups": by_group,
    }


def _common(
    case: Case, name: str, method: str, settings: list[str], seed: int, audited: StoredAudit, runs: Path
) -> dict[str, Any]:
    words = " ".join(f"--set {setting}" for setting in settings).replace(str(runs), "runs")
    return {
        "set": case.name,
        "method": name,
        "seed": seed,
        "command": f"unspur train {method} {case.data} {words} --seed {seed}",
        "cues": audited.findings["cues"] if method == "swap" else None,
        "commit": commit(),
    }


def row(case: Case, name: str, method: str, own: tuple[str, ...], seed: int, audited: StoredAudit, args: Any) -> Any:
    settings = [*case.settings, *own]
    config = configure(method, case.data, None, seed, settings)
    files = DataFiles(args.data_dir)
    config = prepared(config, given_keys(config.method, None, settings), files, print)
    result = run(config, args.runs, data_dir=args.data_dir, files=files, resume=True, progress=True)
    kept = ("accuracy", "mean_group_accuracy", "worst_group_accuracy", "conflicting_accuracy")
    return {
        **_common(case, name, method, settings, seed, audited, args.runs),
        "status": result["status"],
        "tests": {t: {k: scores[k] for k in kept} for t, scores in result.get("tests", {}).items()},  # type: ignore[literal-required]
        "sizes": result.get("sizes"),
        "seconds": result["seconds"],
        "key": result["key"],
        "machine": result["machine"],
    }


def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = (
        read_json(FILE) if FILE.exists() else {"command": "python scripts/swap_figures.py", "rows": []}
    )
    return stored


def made_case(case: Case, args: Any) -> Case:
    """Cats and dogs with a watermark in a corner, and the same images without it: those of scripts/photographs.py."""
    if case.data != "folder":
        return case
    settings = tagged(args.runs, args.data_dir)
    if case.name != "tagged":
        settings = (f"data.root={args.runs / 'photographs' / 'cats-dogs'}", settings[-1])
    return case._replace(settings=settings)


def audit_of(case: Case, args: Any) -> StoredAudit:
    """The audit of a set's training images; of digits the first 2,000, which shows the cue as well as all of them."""
    spec = configure_data(case.data, case.settings)
    data = spec.load(DataFiles(args.data_dir))
    most = len(data.train) if case.data in FROZEN else AUDITED
    source = splits_source(data, {"train": data.train.subset(torch.arange(min(most, len(data.train))))})
    settings = Settings(local=case.local)
    return audit_into(args.runs / "audits", case.data, source, target=train_words(spec), settings=settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default="swap,erm")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--data-dir", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for seed in parse_seeds(args.seeds):
        for case in [made_case(case, args) for name in args.sets.split(",") for case in SETS[name]]:
            audited = audit_of(case, args)
            found = audited.findings
            print(case.name, found["verdict"], found["cues"], flush=True)
            chosen = {name: how for name, how in methods(case, audited).items() if name in args.methods.split(",")}
            for name, (method, own) in chosen.items():
                place = {"set": case.name, "method": name, "seed": seed}
                if any(all(old[key] == value for key, value in place.items()) for old in _stored()["rows"]):
                    continue
                try:
                    make = frozen_row if case.data in FROZEN else row
                    done = make(case, name, method, own, seed, audited, args)
                except UnspurError as error:
                    print(f"{name} on {case.name}, seed {seed}: {error}", flush=True)
                    continue
                stored = _stored()  # another process may have added rows meanwhile
                judged = {"verdict": found["verdict"], "sentence": found["sentence"], "cues": found["cues"]}
                stored["audits"] = {**stored.get("audits", {}), case.name: judged}
                write_json(FILE, {**stored, "rows": [*stored["rows"], done]})
                print(name, seed, {t: round(100 * s["accuracy"], 2) for t, s in done["tests"].items()}, flush=True)


if __name__ == "__main__":
    main()
