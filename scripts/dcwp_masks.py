"""How to learn DCWP's masks: where theta begins, what Eq. 11 penalises, lambda_up; judged on validation images alone.

    python scripts/dcwp_masks.py RUN [--steps 1000]

RUN is a finished run of dcwp. Its pretrained network is pruned anew with each reading, and scored on the samples of the
validation set that its biased model got wrong, by which a run chooses too, and on the others. The test sets are not
touched. Readings that results/dcwp-masks.jsonl has of the run are not done again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unspur.core.files import read_tensors
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.methods.dcwp import DCWP
from unspur.parts.debias import Debias, learn_masks, prune_for_good
from unspur.parts.pruning import kept_ratio
from unspur.parts.select import val_scores
from unspur.runs.experiment import fabric_for
from unspur.runs.folder import Run
from unspur.train.session import Session
from unspur.version import commit

LOG = Path("results/dcwp-masks.jsonl")
READINGS: list[dict[str, Any]] = [
    *({"start": start, "penalise": "keep", "l1": 1e-8} for start in (1.5, 0.0, 0.8, -0.5)),
    *({"start": start, "penalise": "theta", "l1": 1e-8} for start in (1.5, 0.0)),
    *({"start": start, "penalise": "keep", "l1": 1e-7} for start in (0.0, 1.5)),
    {"start": 0.0, "penalise": "keep", "l1": 1e-8, "up": 200.0},  # E.2: 80
]


def score(run: Run, data: Dataset, reading: dict[str, Any], steps: int) -> dict[str, Any]:
    """The validation scores of the run's pretrained network with masks learnt after ``reading``."""
    method, seed = run.config.method, run.config.seed
    assert isinstance(method, DCWP)
    session = Session(fabric_for(run.config), seed=seed)
    mined, mined_val = stored(run, "mined", len(data.train)), stored(run, "mined_val", len(data.val))
    recipe = replace(method.masks, steps=steps, **reading)
    debias = Debias(mined, method.reading, method.temperature)
    model, train = run.load_model(data, "erm"), data.train.without_attributes()
    masks = learn_masks(model, train, debias, recipe, lambda pruned: {}, session)
    pruned = prune_for_good(model, train, debias, recipe, masks, session)
    found = val_scores(pruned, data.val, mined_val, session)
    return {"kept": kept_ratio(masks), **found}


def stored(run: Run, name: str, samples: int) -> torch.Tensor:
    """Which samples an artifact of the run numbers."""
    mined = torch.zeros(samples, dtype=torch.bool)
    mined[read_tensors(run.folder / "artifacts" / f"{name}.safetensors")[0][name]] = True
    return mined


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of readings, from 0; all if left out")
    arguments = parser.parse_args()
    run = Run.open(arguments.run)
    data = run.config.data.load(DataFiles(None))
    done = [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []
    for reading in READINGS if arguments.only is None else [READINGS[number] for number in arguments.only]:
        trial = {"run": run.config.key, "steps": arguments.steps, **reading}
        if any(trial.items() <= line.items() for line in done):
            continue
        line = {**trial, **score(run, data, reading, arguments.steps), "config": run.config.to_json()}
        line |= {"commit": commit()}
        with LOG.open("a") as log:
            log.write(json.dumps(line) + "\n")
        print({name: line[name] for name in (*reading, "kept", "val_mined_accuracy", "val_mined_loss")}, flush=True)


if __name__ == "__main__":
    main()
