"""Which numbers of bits give `parity` the published range of accuracies: the log of trials.

    python scripts/parity_trials.py --bits 5,2,13 6,2,12 [--rates 0.01 0.75] [--seeds 0] [--epochs 300]

The large-learning-rate paper trains a fully connected network of 3 x 200 on parities of bits and publishes an unbiased
accuracy from 55.31 % at its lowest rate, 0.01, to 85.66 % at most (Table 1, rates up to 0.75), but not how many core,
spurious and noise bits there are. Each trial trains as the paper does and is a line of results/parity-trials.jsonl;
those that it has are not done again. What is chosen here is a data set, not a model: nothing else is fitted to tests.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from unspur.data.files.fetch import DataFiles
from unspur.errors import Diverged
from unspur.evaluation.scores import evaluate
from unspur.papers.large_lr import BASE
from unspur.runs.config import configure
from unspur.train.session import Session
from unspur.version import commit

LOG = Path("results/parity-trials.jsonl")
NETWORK = ("arch.depth=3", "arch.width=200")  # section 5


def trial(bits: str, rate: float, seed: int, epochs: int) -> dict[str, Any]:
    """Train once and score the unbiased test set."""
    core, spurious, noise = bits.split(",")
    numbers = [f"data.core={core}", f"data.spurious={spurious}", f"data.noise={noise}"]
    own = [*BASE, *NETWORK, *numbers, f"erm.lr={rate}", f"erm.epochs={epochs}"]
    config = configure("erm", "parity", "fcn", seed, own)
    data, session = config.data.load(DataFiles()), Session()
    begin = time.process_time()
    try:
        fit = config.method.fit(config.arch.build(data, seed=seed), data.train, seed=seed, session=session)
    except Diverged as error:
        return {"status": "diverged", "reason": str(error), "cpu_seconds": round(time.process_time() - begin, 1)}
    score = evaluate(fit.model, data)["unbiased"]
    last = session.history["erm"][-1]
    return {
        "status": "done",
        "epochs": last["epoch"],
        "training_accuracy": last["accuracy"],
        **{name: score[name] for name in ("accuracy", "aligned_accuracy", "conflicting_accuracy")},
        "cpu_seconds": round(time.process_time() - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bits", nargs="+", required=True, metavar="CORE,SPURIOUS,NOISE")
    parser.add_argument("--rates", nargs="+", type=float, default=[0.01, 0.75])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--epochs", type=int, default=300, help="at most")
    arguments = parser.parse_args()
    LOG.parent.mkdir(exist_ok=True)
    lines = [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []
    done = [[line[key] for key in ("bits", "rate", "seed", "at_most")] for line in lines]
    for bits in arguments.bits:
        for seed in arguments.seeds:
            for rate in arguments.rates:
                if [bits, rate, seed, arguments.epochs] in done:
                    continue
                line = {"bits": bits, "rate": rate, "seed": seed, "at_most": arguments.epochs}
                line |= {**trial(bits, rate, seed, arguments.epochs), "commit": commit()}
                with LOG.open("a") as log:
                    log.write(json.dumps(line) + "\n")
                print(line, flush=True)


if __name__ == "__main__":
    main()
