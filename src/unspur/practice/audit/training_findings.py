"""What gives labels away in a run's data, graded on the images that it was trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from unspur.practice.audit.collect import Collected
from unspur.practice.audit.data_findings import DataFindings, data_findings, gravity
from unspur.practice.audit.findings import RARE
from unspur.practice.audit.image_source import FEWEST

MARKS = (RARE, "moving")  # families of marks that lie anywhere


def found_in_training(
    data: Collected, *, seed: int, local: bool, progress: Callable[[float], None] = lambda done: None
) -> DataFindings:
    """Every test of the data; for a run, graded on the images that it was trained on.

    Validation images may have been drawn differently, say with every group equally often, and hide what training images
    have in common. They still count for what each image shows, since a model is tested on them, and for marks.
    """
    if data.training is None or not _enough(data.y[data.training], len(data.classes)):
        return data_findings(data, seed=seed, local=local, progress=progress)
    numbers = data.training.nonzero().squeeze(1)
    found = data_findings(data, seed=seed, local=local, progress=lambda done: progress(done / 2))
    trained = data_findings(data.only(numbers), seed=seed, local=False, progress=lambda done: progress((1 + done) / 2))
    return _graded_on(trained, numbers, found)


def _enough(y: Tensor, classes: int) -> bool:
    return bool((torch.bincount(y, minlength=classes) >= FEWEST).all())


def _graded_on(trained: DataFindings, numbers: Tensor, found: DataFindings) -> DataFindings:
    """Findings as graded on the training images (``numbers``), with what ``found`` says about each of all images.

    Marks that lie anywhere are taken from ``found`` as they are.
    """
    same = {each.family: each for each in found.findings}
    graded = [each for each in found.findings if each.family in MARKS]
    for each in trained.findings:
        if each.family in same and each.family not in MARKS:
            graded.append(replace(each, margins=same[each.family].margins, index=same[each.family].index))
        elif each.family not in MARKS:
            graded.append(replace(each, index=numbers[each.index]))
    return replace(trained, findings=tuple(sorted(graded, key=gravity)), tested=found.tested)
