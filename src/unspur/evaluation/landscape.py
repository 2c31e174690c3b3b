"""What surrounds a solution: training loss, test accuracy and spurious use on a plane (large-LR, Figure 9)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.progress import Done
from unspur.data.base import Dataset, Split
from unspur.errors import UnspurError, require
from unspur.evaluation.figures import Plane, Surroundings
from unspur.evaluation.scores import activations, predict, some
from unspur.metrics.attribution import mean_shares
from unspur.metrics.landscape import landscape
from unspur.metrics.represent import average_selectivity
from unspur.saliency.attributions import integrated_gradients

SAMPLES = 500  # training and test samples that each point is measured on
ATTRIBUTED = 50  # of these: samples whose attributions are computed

Measure = Callable[[nn.Module], float]
SpuriousBy = Literal["attribution", "selectivity"]


def surroundings(
    model: nn.Module,
    data: Dataset,
    test: str,
    masks: Mapping[str, Tensor],
    *,
    points: int = 9,
    seed: int = 0,
    progress: Done | None = None,
) -> Surroundings:
    """Measures on ``points`` x ``points`` places around a solution, as plain values for JSON; the axis is ``axis``.

    ``loss`` is that of training samples, ``accuracy`` that of test samples. ``spurious_use`` is the share of Integrated
    Gradients on the mask ``spurious`` if there is one; otherwise the mean bias-selectivity of the penultimate neurons
    for the first attribute. ``spurious_by`` says which; both are None if neither can be measured. A value that is not
    finite is None, too. ``unknown`` says why.
    """
    train, tested = (some(split, SAMPLES, seed) for split in (data.train, data.tests[test]))
    measures: dict[str, Measure] = {
        "loss": lambda moved: float(functional.cross_entropy(predict(moved, train), train.y)),
        "accuracy": lambda moved: float((predict(moved, tested).argmax(1) == tested.y).double().mean()),
    }
    unknown: dict[str, str] = {}
    try:
        by, measures["spurious_use"] = _spurious_use(model, tested, masks)
    except UnspurError as error:
        by, unknown["spurious_use"] = None, str(error)
    found = landscape(model, measures, points=points, seed=seed, progress=progress)
    planes: dict[str, Plane] = {
        name: [[value if math.isfinite(value) else None for value in row] for row in rows]
        for name, rows in found.values.items()
    }
    for name, rows in planes.items():
        if gaps := sum(value is None for row in rows for value in row):
            unknown[name] = f"Not a finite number at {gaps} of {points**2} places."
    return {
        "axis": list(found.axis),
        "loss": planes["loss"],
        "accuracy": planes["accuracy"],
        "spurious_use": planes.get("spurious_use"),
        "spurious_by": by,
        "unknown": unknown,
    }


def _spurious_use(model: nn.Module, tested: Split, masks: Mapping[str, Tensor]) -> tuple[SpuriousBy, Measure]:
    """How spurious use can be measured for this model and data, and the measure; an error if it cannot."""

    def share(moved: nn.Module) -> float:
        device = next(moved.parameters()).device
        x = tested.batch(torch.arange(min(ATTRIBUTED, len(tested))), device).x
        found = mean_shares(integrated_gradients(moved, x).cpu(), {"spurious": masks["spurious"]})["spurious"]
        return math.nan if found is None else found

    def selectivity(moved: nn.Module) -> float:
        values, label = next(iter(tested.attributes.values())).unique(return_inverse=True)
        return average_selectivity(activations(moved, tested), label, len(values))

    if "spurious" in masks:
        return "attribution", share
    require(bool(tested.attributes), "The data has no attributes, and the shortcut no place of its own.")
    selectivity(model)  # an error if there is no penultimate layer, or a single value of the attribute
    return "selectivity", selectivity
