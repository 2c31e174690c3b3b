"""The large-learning-rate paper's sweeps, one data set and network at a time, beside its Table 1.

    python scripts/large_lr_sweeps.py parity-fcn ... [--rates 0.01,0.1] [--seeds 0,1,2] [--jobs 2] [--set KEY=VALUE]
                                      [--once 0.01] [--variant few]

Each sweep trains as the table does (papers/large_lr.py; the CNN with a quarter of its channels), over five rates of the
published range unless --rates says otherwise, and analyses every run; rates that --once names are tried with the first
seed only. It writes results/large-lr/NAME.json, with every run's scores, and NAME.svg, the paper's figure; with
--variant NAME-VARIANT, so that a sweep with other settings can stand beside the first. `make results`
then writes the tables of results/ again from all that is there.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from large_lr_tables import published

from unspur.core.files import write_json
from unspur.data.files.fetch import DataFiles
from unspur.papers.large_lr import ARCHS, DATA, NARROW, epochs, rates, settings
from unspur.papers.reproduce import parse_seeds
from unspur.report.sweeps import write_figure
from unspur.runs.sweep import plan, sweep
from unspur.version import commit

OUT = Path("results/large-lr")
NATURAL = "cifar10-cnn"  # Figure 10: no shortcut is planted, and no value is published
NATURAL_RATES = (0.001, 0.2)  # of MNIST-CIFAR with the same network


def do(name: str, arguments: argparse.Namespace) -> None:
    """One sweep, whose results are written."""
    if name == NATURAL:
        title, model, span, data = "CIFAR-10", "CNN", NATURAL_RATES, "cifar10"
    else:
        title, model, ranges = published()[name]
        span, data = ranges["rate"], DATA[title]
    own = (*settings(title, model, epochs(title, model)), *(NARROW if model == "CNN" else ()))
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
    images = len(points[0].configs[0].data.load(DataFiles(None)).train)
    made = {"command": command, "commit": commit(), "settings": [*own, *arguments.set], "training images": images}
    found = {**made, **found}
    OUT.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{arguments.variant}" if arguments.variant else name
    write_json(OUT / f"{stem}.json", found)
    write_figure(found, OUT / f"{stem}.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help=f"of {NATURAL}, {', '.join(published())}", metavar="NAME")
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
    print("The tables: make results")


if __name__ == "__main__":
    main()
