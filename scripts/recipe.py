"""The thorough repair's recipe, its parts one by one, and every single method, on sets that none of it was found on.

    python scripts/recipe.py [--sets planes-ships,...] [--seeds 0,1,2] [--runs runs] [--data-dir DIR]

Six pairs of CIFAR-10 (JPEG) classes, 96 pixels wide, each with another shortcut of `unspur data plant` that names
the class on 95 % of the training and validation images. Each set is audited without group labels; swap is told what the
audit found. Parts: heads on frozen features that lack a part of the recipe, and whole networks trained on copies. The
evidence that the thorough repair chooses by is measured on validation images alone. Single methods are those that train
heads on frozen features, by `unspur compare`. Rows that are there already are not made again: results/recipe.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from photographs import Pair
from torch import Tensor, nn

from unspur.core.files import read_json, write_json
from unspur.core.progress import silent
from unspur.core.seeds import derive
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.evaluation.scores import predict, score
from unspur.methods.base import LogitsMethod
from unspur.methods.catalog import METHODS
from unspur.papers.reproduce import parse_seeds
from unspur.parts.cues.texts import cues_of
from unspur.parts.features import features_of
from unspur.parts.last_layer import set_head
from unspur.parts.last_logistic import STRENGTHS, Judged
from unspur.parts.logistic_path import logistic_path
from unspur.parts.swapping import CueExchange, usual_share, with_copies
from unspur.practice.audit.audit import Settings
from unspur.practice.audit.sources import splits_source, train_words
from unspur.practice.audit.stored import audit_into
from unspur.practice.repair.evidence import evidence_of
from unspur.runs.compare import compare
from unspur.runs.config import configure, configure_data
from unspur.runs.defaults import fitted, given_keys, usual_network
from unspur.runs.entries import enter
from unspur.runs.estimate import size_of
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.many import Many
from unspur.train.session import Session
from unspur.version import commit

FILE = Path("results/recipe.json")
FIRST = 2000  # image of each class: nothing of `repair` or `swap` was settled on it or those behind it
# (of the audit, later, that one mark is one leak: on cars-trucks)
COPIES, JUDGED = 4, 3  # swap's own
SETS = {
    "planes-ships": Pair(("airplane", "ship"), "border", FIRST),
    "cars-trucks": Pair(("automobile", "truck"), "square", FIRST),
    "deer-horses": Pair(("deer", "horse"), "color", FIRST),
    "birds-frogs": Pair(("bird", "frog"), "corruption", FIRST),
    "dogs-horses": Pair(("dog", "horse"), "disc", FIRST),
    "cats-birds": Pair(("cat", "bird"), "domino", FIRST),
}
LAST_LAYER = ("balanced_last_layer", "ee", "swap", "ule_last_layer")  # of a frozen network, whatever the setting
SINGLE = [name for name, method in METHODS.items() if issubclass(method, LogitsMethod) or name in LAST_LAYER]
SHOWN = ("accuracy", "worst_group_accuracy", "mean_group_accuracy", "conflicting_accuracy")


class Case(NamedTuple):
    """A set with a shortcut, and what the audit says of it."""

    name: str
    settings: tuple[str, ...]
    verdict: str
    cues: list[str]


def settings_of(name: str, args: argparse.Namespace) -> tuple[str, ...]:
    """The settings that read one of the sets, which is made if it is not there yet."""
    below = args.runs / "recipe"
    return SETS[name].planted(below / "plain" / name, below / "planted" / name, args.data_dir)


def audited(name: str, args: argparse.Namespace) -> Case:
    """The set, with the cues that an audit of its training images finds."""
    settings = settings_of(name, args)
    spec = configure_data("folder", settings)
    data = spec.load(DataFiles(args.data_dir))
    source = splits_source(data, {"train": data.train})
    words = train_words(spec)
    found = audit_into(args.runs / "audits", name, source, target=words, settings=Settings()).findings
    return Case(name, settings, found["verdict"], found["cues"])


def scored(logits: Tensor, data: Dataset) -> dict[str, float | None]:
    found = score(logits, data.tests["test"], data.train)
    return {name: found[name] for name in SHOWN}  # type: ignore[literal-required]


def heads(case: Case, seed: int, args: argparse.Namespace) -> Iterator[tuple[str, nn.Module, Dataset]]:
    """Models that lack a part of the recipe, and the one that has all of its parts in the last layer."""
    data = configure_data("folder", case.settings).load(DataFiles(args.data_dir))
    model, session, classes = usual_network().build(data, seed=seed), Session(seed=seed), len(data.classes)
    exchange, share = CueExchange(cues_of(case.cues)), usual_share(len(data.classes))
    copies = with_copies(data.train, exchange, COPIES, derive(seed, "swap"), share=share, originals=False)
    val = with_copies(data.val, exchange, JUDGED, derive(seed, "swap", "val"), share=1.0, originals=False)
    own, others = (
        features_of(model, split, session, name) for split, name in ((data.train, "own"), (copies, "copies"))
    )
    plainly = Judged.of(model, data.val, session, "val")
    swapped = Judged.of(model, val, session, "val-copies", JUDGED)
    both, y = torch.cat([own, others]), torch.cat([data.train.y, copies.y])
    weight = torch.full((len(both),), share / len(others))
    weight[: len(own)] = (1 - share) / len(own)
    balanced = weight / torch.bincount(y, weight)[y]
    alone, together = (own, data.train.y), (both, y)
    paths = {
        "plain": (alone, None, plainly.best),
        "L2 by copies": (alone, None, lambda path: swapped.steadiest(path, STRENGTHS)),
        "copies": (together, weight, plainly.best),
        "copies, L2 by copies": (together, weight, lambda path: swapped.steadiest(path, STRENGTHS)),
        "copies, L2 by copies, classes alike": (together, balanced, lambda path: swapped.steadiest(path, STRENGTHS)),
    }
    for name, ((x, labels), counts, best) in paths.items():
        path = logistic_path(x, labels, STRENGTHS, classes, weight=counts)
        set_head(model, *path[best(path)])
        yield f"last layer: {name}", model, data


def networks(case: Case, seed: int, args: argparse.Namespace) -> Iterator[tuple[str, nn.Module, Dataset]]:
    """The whole network: plainly, with copies beside images, and with copies in place of all images."""
    cues = f"cues={','.join(case.cues)}"
    whole = {
        "all layers: plain": ("erm", ()),
        "all layers: copies": ("swap", ("layers=all", cues)),
        "all layers: copies everywhere": ("swap", ("layers=all", cues, "share=1.0")),
    }
    for name, (method, own) in whole.items():
        settings, files = [*case.settings, *own], DataFiles(args.data_dir)
        config = configure(method, "folder", None, seed, settings)
        config = fitted(config, given_keys(config.method, None, settings), size_of(config, files))
        run(config, args.runs, files=files, resume=True, progress=True)
        data = config.data.load(files)
        yield name, Run.create(args.runs, config).load_model(data), data


def parts(case: Case, seed: int, args: argparse.Namespace, known: set[str]) -> Iterator[dict[str, Any]]:
    """A row for each model: its scores on the test set, and the evidence by which a repair would choose it."""
    for make in (heads, networks):
        for name, model, data in make(case, seed, args):
            if name in known:
                continue
            found = evidence_of(model, data.val, cues_of(case.cues), seed, silent)
            assert found.swapped is not None
            by_class = [float(found.swapped[data.val.y == label].mean()) for label in range(len(data.classes))]
            yield {
                "set": case.name,
                "part": name,
                "seed": seed,
                "scores": scored(predict(model, data.tests["test"]), data),
                "evidence": sum(by_class) / len(by_class),
                "sizes": {"train": len(data.train), "val": len(data.val), "test": len(data.tests["test"])},
                "commit": commit(),
            }


def singles(case: Case, args: argparse.Namespace) -> Any:
    """Every method that trains a head on frozen features, on all seeds."""
    settings = [*case.settings, "arch.freeze=backbone"]
    if case.cues:
        settings.append(f"swap:cues={','.join(case.cues)}")
    methods = [name for name in SINGLE if case.cues or name != "swap"]
    entries = enter(methods, ["folder"], parse_seeds(args.seeds), settings=settings, data_dir=args.data_dir)
    found = compare(entries, Many(args.runs, 1, "local", args.data_dir), progress=True)
    return found["datasets"][0]["rows"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--data-dir", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.sets.split(","):
        case = audited(name, args)
        print(name, case.verdict, case.cues, flush=True)
        keep(case, singles=singles(case, args))
        if not case.cues:
            continue
        for seed in parse_seeds(args.seeds):
            known = {row["part"] for row in stored()["parts"] if (row["set"], row["seed"]) == (name, seed)}
            for row in parts(case, seed, args, known):
                keep(case, row=row)
                print(name, seed, row["part"], row["scores"], flush=True)


def stored() -> dict[str, Any]:
    """What was written so far."""
    empty: dict[str, Any] = {"command": "python scripts/recipe.py", "audits": {}, "parts": [], "singles": {}}
    return read_json(FILE) if FILE.exists() else empty


def keep(case: Case, *, row: dict[str, Any] | None = None, singles: Any = None) -> None:
    """Add what was measured; another process may have added to it meanwhile."""
    found = stored()
    found["audits"][case.name] = {"verdict": case.verdict, "cues": case.cues, "shortcut": SETS[case.name].shortcut}
    if row is not None:
        found["parts"].append(row)
    if singles is not None:
        found["singles"][case.name] = {"commit": commit(), "rows": singles}
    write_json(FILE, found)


if __name__ == "__main__":
    main()
