"""The large-learning-rate paper's sweeps, one data set and network at a time, beside its Table 1.

    python scripts/large_lr_sweeps.py [parity-fcn ...] [--rates 0.01,0.1] [--seeds 0,1,2] [--jobs 2] [--set KEY=VALUE]
                                      [--once 0.01] [--variant few]

Each sweep trains as the table does (papers/large_lr.py; the CNN with a quarter of its channels), over five rates of the
published range unless --rates says otherwise, and analyses every run; rates that --once names are tried with the first
seed only. It writes results/large-lr/NAME.json, with every run's scores, and NAME.svg, the paper's figure; with
--variant NAME-VARIANT, so that a sweep with other settings can stand beside the first. Then results/large-lr/README.md
is written anew from all that is there; without names nothing else is done.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unspur.core.files import write_json, write_text
from unspur.metrics.correlation import rank_correlation
from unspur.papers.large_lr import ARCHS, COLUMNS, DATA, EPOCHS, MODELS, NARROW, TABLE_1, parse, rates, settings
from unspur.papers.reproduce import parse_seeds
from unspur.report.sweeps import write_figure
from unspur.runs.sweep import plan, sweep
from unspur.version import commit

OUT = Path("results/large-lr")
SCORES = ("unbiased accuracy", *COLUMNS)
PRUNED = "pruned accuracy"  # the mean over kappa itself, not over the accuracy of the whole network
ALSO = (PRUNED, "max loss ratio", "core attribution", "attribution entropy", "training accuracy", "epochs")
PAIRS = (
    ("Figure 12", "unbiased accuracy", "max loss ratio"),
    ("Figure 26", "core attribution", "CSI"),
)
NATURAL = "cifar10-cnn"  # Figure 10: no shortcut is planted, and no value is published
NATURAL_RATES = (0.001, 0.2)  # of MNIST-CIFAR with the same network


def published() -> dict[str, tuple[str, str, dict[str, tuple[float, float]]]]:
    """The sweeps of Table 1 by name: data set and model as printed, and the range of each column."""
    names = {model: name for name, model in MODELS.items()}
    return {
        f"{DATA[data]}-{names[model]}": (data, model, dict(zip(("rate", *SCORES), ranges, strict=True)))
        for data, model, ranges in parse(TABLE_1)
    }


def do(name: str, arguments: argparse.Namespace) -> None:
    """One sweep, whose results are written."""
    if name == NATURAL:
        title, model, span, data = "CIFAR-10", "CNN", NATURAL_RATES, "cifar10"
    else:
        title, model, ranges = published()[name]
        span, data = ranges["rate"], DATA[title]
    own = (*settings(title, model, EPOCHS.get(model, 50)), *(NARROW if model == "CNN" else ()))
    tried = sorted(arguments.rates.split(",") if arguments.rates else rates(*span), key=float)
    once = (arguments.once or "").split(",")
    seeds, points = parse_seeds(arguments.seeds), []
    for rate in tried:
        chosen = seeds[:1] if rate in once else seeds
        points += plan("erm", data, [f"erm.lr={rate}"], chosen, ARCHS[model], [*own, *arguments.set])
    found = sweep(points, arguments.runs, jobs=arguments.jobs, analyze=True, progress=True, say=print)
    chosen = {key: value for key in ("rates", "seeds", "once", "variant") if (value := getattr(arguments, key))}
    given = [f"--{key} {value}" for key, value in chosen.items()] + [f"--set {setting}" for setting in arguments.set]
    command = f"python scripts/large_lr_sweeps.py {name} {' '.join(given)}"
    found = {"command": command, "commit": commit(), "settings": [*own, *arguments.set], **found}
    OUT.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{arguments.variant}" if arguments.variant else name
    write_json(OUT / f"{stem}.json", found)
    write_figure(found, OUT / f"{stem}.svg")


def page() -> str:
    """All sweeps as tables."""
    files = sorted(OUT.glob("*.json"))
    parts = [
        "# Sweeps over the learning rate\n",
        "Written by `python scripts/large_lr_sweeps.py` from the files beside it. A cell is the mean over seeds; rank",
        "correlations are over all runs at usable rates, and *published* is the range of Table 1 of arXiv:2507.17748.",
        f"Prunability is accuracy after pruning over accuracy before, averaged over kappa; *{PRUNED}* is the former",
        "alone.\n",
    ]
    sweeps = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
    parts += [*overview(sweeps), ""]
    for stem, found in sweeps.items():
        parts += [f"## {stem}\n", f"`{found['command']}` at {found['commit']}; seeds {_listed(found['seeds'])}.\n"]
        parts += [*table(stem, found), "", *pairs(found), f"![{stem}]({stem}.svg)\n"]
    return "\n".join(parts)


def overview(sweeps: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """All sweeps beside Table 1: the lowest and highest mean of each score over usable rates."""
    yield "Lowest and highest mean over usable rates (below the first whose training diverged with any seed, lost 25"
    yield "points of training accuracy or gave one answer for all; a rate too low to come within 25 points of the best"
    yield "is not usable either), in brackets as published, then the rank correlation with the rate."
    yield "CIFAR-10 has no planted shortcut: its accuracy is that of the test set.\n"
    yield f"| sweep, rates, seeds | {' | '.join(SCORES)} |"
    yield f"| --- |{' --- |' * len(SCORES)}"
    for stem, found in sweeps.items():
        usable = [point for point in found["points"] if point["usable"]]
        span = [usable[number]["settings"]["erm.lr"] for number in (0, -1)]
        head = f"{stem}, {span[0]} to {span[1]}, {len(found['seeds'])}"
        yield f"| {head} | {' | '.join(_range(stem, score, usable, found) for score in SCORES)} |"


def _range(stem: str, score: str, usable: list[Any], found: Mapping[str, Any]) -> str:
    own = _accuracy(usable[0]["scores"]) if score == "unbiased accuracy" else score
    means = sorted((point["scores"][own] for point in usable), key=lambda value: value["mean"])
    cells = [f"{_cell(own, means[0])} to {_cell(own, means[-1])}"]
    cells += [f"({low:g} to {high:g})" for low, high in (ranges[score] for ranges in _published(stem))]
    return " ".join([*cells, _signed(found["correlations"]["erm.lr"].get(own))])


def _published(stem: str) -> list[dict[str, tuple[float, float]]]:
    return [ranges for name, (_, _, ranges) in published().items() if stem.startswith(name)]


def table(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    """One sweep: a row a rate, then correlations and what is published."""
    points = [with_pruned_accuracy(point) for point in found["points"]]
    known = [score for score in (*SCORES, "test accuracy", *ALSO) if any(score in p["scores"] for p in points)]
    yield f"| rate | {' | '.join(known)} |"
    yield f"| --- |{' --- |' * len(known)}"
    for point in points:
        ends = [run["status"] for run in point["runs"] if run["status"] != "done"]
        notes = [f"{ends.count(end)} {end}" for end in sorted(set(ends))]
        notes += ["1 seed"] if len(point["runs"]) < len(found["seeds"]) else []
        notes += [] if point["usable"] or ends else ["not usable"]
        rate = ", ".join([point["settings"]["erm.lr"], *notes])
        yield f"| {rate} | {' | '.join(_cell(score, point['scores'].get(score)) for score in known)} |"
    for word, of in (("rate", found["correlations"]["erm.lr"]), ("accuracy", found["with_accuracy"])):
        yield f"| correlation with the {word} | {' | '.join(_signed(of.get(score)) for score in known)} |"
    for ranges in _published(name):
        cells = [f"{ranges[s][0]:g} to {ranges[s][1]:g}" if s in ranges else "" for s in known]
        yield f"| published, {ranges['rate'][0]:g} to {ranges['rate'][1]:g} | {' | '.join(cells)} |"


def pairs(found: Mapping[str, Any]) -> Iterator[str]:
    """Rank correlations over all runs at usable rates that the paper shows as figures of their own."""
    scores = [run["scores"] for point in found["points"] if point["usable"] for run in point["runs"]]
    for word, one, other in PAIRS:
        both = [(each[one], each[other]) for each in scores if one in each and other in each]
        if len(both) > 2:
            value = rank_correlation([x for x, _ in both], [y for _, y in both])
            yield f"{word}: rank correlation of {one} with {other} {_signed(value)} over {len(both)} runs.\n"


def with_pruned_accuracy(point: Mapping[str, Any]) -> dict[str, Any]:
    """A point of a sweep with the mean over kappa and seeds of the accuracy that pruning leaves, where it is known."""
    runs = [run["scores"] for run in point["runs"] if "prunability" in run["scores"]]
    left = [scores["prunability"] * scores[_accuracy(scores)] for scores in runs]
    more = {PRUNED: {"mean": sum(left) / len(left)}} if left else {}
    return {**point, "scores": {**point["scores"], **more}}


def _accuracy(scores: Mapping[str, Any]) -> str:
    return "unbiased accuracy" if "unbiased accuracy" in scores else "test accuracy"


def _cell(score: str, value: Mapping[str, Any] | None) -> str:
    if value is None:
        return ""
    return f"{100 * value['mean']:.2f}" if score.endswith("accuracy") else f"{value['mean']:.3g}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {NATURAL}, {', '.join(published())}", metavar="NAME")
    parser.add_argument("--rates", help="learning rates, separated by commas")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--once", help="rates for the first seed only, separated by commas")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--variant", help="a word that ends the names of the files")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - {NATURAL, *published()}:
        parser.error(f"There is no sweep {', '.join(sorted(unknown))}; there are {NATURAL}, {', '.join(published())}.")
    for name in arguments.names:
        do(name, arguments)
    write_text(OUT / "README.md", page())


if __name__ == "__main__":
    main()
