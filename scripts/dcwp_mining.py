"""How to train DCWP's biased model on Colored MNIST: what it mines after every epoch, by optimiser and rate.

    python scripts/dcwp_mining.py

E.2 gives 2,000 steps and q = 0.7 but neither optimiser nor rate. Precision and recall are those on training images,
whose colours are known here; the test sets are not touched. Trials that
results/dcwp-mining.jsonl has are not done again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from unspur.config import configure
from unspur.data.fetch import DataFiles
from unspur.experiment import fabric_for
from unspur.methods.dcwp import DCWP
from unspur.train.loop import Moment
from unspur.train.loop import train as train_model
from unspur.train.losses import generalised_cross_entropy
from unspur.train.mining import GCE, STAGE, mining_quality, wrong
from unspur.train.session import Session
from unspur.version import commit

LOG = Path("results/dcwp-mining.jsonl")
CASES = ((491, 1), (2449, 0), (249, 0))  # conflicting samples (1, 5 and 0.5 %) and seed
READINGS = (("sgd", 0.01, 9), ("adam", 0.01, 4), ("adam", 0.001, 3))  # optimiser, rate, epochs


def mined_by_epoch(settings: list[str], seed: int) -> list[dict[str, Any]]:
    """How many samples are mined after each epoch, and how many of them rightly."""
    config = configure("dcwp", "colored_mnist", "cnn3", seed, settings)
    assert isinstance(config.method, DCWP) and isinstance(config.method.mining, GCE)
    data, mining = config.data.load(DataFiles(None)), config.method.mining
    model, session = config.arch.build(data, seed=seed), Session(fabric_for(config))
    steps, found = -(-len(data.train) // mining.training.batch_size), []

    def watch(moment: Moment) -> None:
        if (moment.step + 1) % steps == 0:
            mined = wrong(model, data.train, session).nonzero().squeeze(1)
            found.append({"mined": len(mined), **mining_quality(mined, data.train)})
            model.train()

    loss = generalised_cross_entropy(mining.q)
    train = data.train.without_attributes()
    train_model(model, train, mining.training, stage=STAGE, seed=seed, session=session, loss=loss, watch=watch)
    return found


def main() -> None:
    torch.set_num_threads(1)
    done = [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []
    for optimiser, rate, epochs in READINGS:
        for count, seed in CASES:
            trial = {"optimiser": optimiser, "lr": rate, "epochs": epochs, "conflict_count": count, "seed": seed}
            if any(trial.items() <= line.items() for line in done):
                continue
            settings = [f"data.conflict_count={count}", "precision=bf16", f"mining.training={optimiser}"]
            settings += [f"mining.training.{key}" for key in (f"lr={rate}", f"epochs={epochs}", "batch_size=256")]
            line = {**trial, "by_epoch": mined_by_epoch(settings, seed), "precision": "bf16", "commit": commit()}
            with LOG.open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
