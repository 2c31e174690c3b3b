"""What a run tells of its mining and its masks: facts, warnings and what is stored."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspur.parts.mining import Mined
from unspur.parts.pruning import Masks, kept_ratio

GIVEN_UP = 0.5  # a class of which more is mined was not learned: no shortcut, whatever it is, misses most of a class


def mined_facts(mined: Tensor, y: Tensor) -> dict[str, Any]:
    """How many samples are mined, in all and of each class."""
    return {"mined": int(mined.sum()), "mined_by_class": torch.bincount(y[mined], minlength=int(y.max()) + 1).tolist()}


def kept_facts(masks: Masks) -> dict[str, Any]:
    """The share of weights that is kept, in all and of each layer."""
    layers = {name: kept_ratio({name: mask}) for name, mask in masks.items()}
    return {"kept": kept_ratio(masks) if masks else 1.0, "kept_by_layer": layers}


def class_warnings(mined: Tensor, y: Tensor) -> list[str]:
    """A sentence for each class of which nothing is mined, or most of it."""
    said = []
    for label in y.unique().tolist():
        share = float(mined[y == label].double().mean())
        if share == 0:
            said.append(f"No sample of class {label} was mined, so none of it is drawn more often.")
        elif share > GIVEN_UP:
            said.append(
                f"Of class {label} {100 * share:.0f} % was mined: the biased model gave the class up, which says "
                "nothing of a shortcut. Lower mining.training.lr, or take another miner."
            )
    return said


def layer_warnings(masks: Masks) -> list[str]:
    """A sentence for each layer of which nothing is left."""
    dead = [name for name, mask in masks.items() if not mask.any()]
    return [f"Nothing is left of {name}: it was pruned whole; lower masks.l1 or masks.steps." for name in dead]


def mined_artifacts(mined: Mined) -> dict[str, Tensor]:
    """The mined samples' places in the training and in the validation set, as stored with the run."""
    parts = {"mined": mined.train, "mined_val": mined.val}
    return {name: found.nonzero().squeeze(1) for name, found in parts.items() if found is not None}


def mask_artifacts(masks: Masks) -> dict[str, Tensor]:
    """The masks as stored with the run."""
    return {f"mask.{name}": mask for name, mask in masks.items()}
