"""How much of the planted square each reading of MaskTune's Eq. 2 hides, on the embedded digits.

python scripts/masktune_readings.py writes results/masktune-readings.json. The measure is of training images alone: the
share of the square's pixels that the masks of images with a square hide.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.nn import functional

from unspur.core.files import write_json
from unspur.data.catalog import load
from unspur.data.masks import BitMask, Mask, hidden_shares
from unspur.methods.erm import ERM
from unspur.methods.masktune import PAPER
from unspur.models.catalog import build_model
from unspur.saliency.maps import maps_of
from unspur.saliency.threshold import MeanStd, hide
from unspur.version import commit

SIZE = (28, 28)
SEEDS = (0, 1, 2)


def square_hidden(mask: Mask, on: torch.Tensor) -> float:
    return float(1 - mask.keep(on.nonzero().squeeze(1))[:, :4, :4].mean())


def main() -> None:
    data = load("biased_mnist", base="mini")
    on = data.train.attributes["square"] == 1
    rows = []
    for seed in SEEDS:
        model = ERM(erm=PAPER).fit(build_model("small_cnn", data, seed=seed), data.train, seed=seed).model
        maps = maps_of(model, data.train)
        for over in ("all", "positive"):
            threshold = MeanStd(over=over)
            coarse = hide(threshold, maps, tuple(maps.shape[1:])).keep(torch.arange(len(maps)))
            enlarged = functional.interpolate(coarse.unsqueeze(1), size=SIZE, mode="nearest-exact").squeeze(1)
            readings = {
                "thresholded, then enlarged": BitMask.of(enlarged == 0),
                "enlarged, then thresholded": hide(threshold, maps, SIZE),
            }
            for reading, mask in readings.items():
                row = {"seed": seed, "over": over, "reading": reading, "square_hidden": square_hidden(mask, on)}
                rows.append(row | {"image_hidden": float(hidden_shares(mask).mean())})
                print(rows[-1], flush=True)
    note = "biased_mnist base=mini, small_cnn, ERM of 4 epochs at rate 0.01, mean + 2 std"
    write_json(Path("results/masktune-readings.json"), {"setup": note, "commit": commit(), "rows": rows})


if __name__ == "__main__":
    main()
