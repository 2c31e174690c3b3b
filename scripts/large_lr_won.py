"""The test images that runs at a high rate win over runs at a low one, with attributions (large-LR, Figure 8).

    python scripts/large_lr_won.py --low RUN... --high RUN... --out FILE.png [--images 8]

The paper has ten seeds of each. From top to bottom: the images, and the Integrated Gradients of the first model at the
low and of the first at the high rate. Which they are is decided by `metrics.agreement.won_by`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from unspur.data.base import Dataset, Split
from unspur.data.files.fetch import DataFiles
from unspur.errors import require
from unspur.evaluation.scores import predict
from unspur.metrics.agreement import won_by
from unspur.runs.analyze import usual_test
from unspur.runs.folder import Run
from unspur.saliency.attributions import integrated_gradients


def right(runs: list[Run], data: Dataset, test: Split) -> Tensor:
    """Whether each run (row) gets each test sample (column) right."""
    return torch.stack([predict(run.load_model(data), test).argmax(1) == test.y for run in runs])


def strip(pictures: Tensor) -> Tensor:
    """Pictures (n, channels, height, width) in [0, 1] beside each other, in colour."""
    return torch.cat(list(pictures.expand(-1, 3, -1, -1)), dim=2)


def maps(run: Run, data: Dataset, x: Tensor) -> Tensor:
    found = integrated_gradients(run.load_model(data), x).sum(1, keepdim=True).abs()
    return found / found.flatten(1).amax(1).clamp_min(1e-12).reshape(-1, 1, 1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--low", type=Path, nargs="+", required=True)
    parser.add_argument("--high", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=8)
    arguments = parser.parse_args()
    low, high = ([Run.open(folder) for folder in own] for own in (arguments.low, arguments.high))
    data = high[0].config.data.load(DataFiles(None))
    test = data.tests[usual_test(data)]
    won = won_by(right(high, data, test), right(low, data, test))
    print(f"{len(won)} of {len(test)} test images are won by the high rate.")
    require(len(won) > 0, "No image is won by the high rate; give more runs of each rate.")
    x = test.batch(won[: arguments.images]).x
    rows = torch.cat([strip(x), strip(maps(low[0], data, x)), strip(maps(high[0], data, x))], dim=1)
    Image.fromarray((rows.permute(1, 2, 0).clamp(0, 1) * 255).byte().numpy()).save(arguments.out)


if __name__ == "__main__":
    main()
