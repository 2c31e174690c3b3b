"""What a run says of its result when that tells classes apart badly, or no better than before."""

from __future__ import annotations

import torch
from torch import nn

from unspur.core.progress import Progress, of_stage
from unspur.data.base import Dataset
from unspur.evaluation.scores import Predictions, TestScores, only_class

LOPSIDED = 0.25  # more of the validation images predicted as a class than are of it
ENOUGH = 50  # validation images by which that is judged


def one_class_warnings(tests: dict[str, TestScores], classes: tuple[str, ...]) -> list[str]:
    """A sentence for test sets of several classes on which the model predicts one class whatever it is shown."""
    said: dict[int, list[str]] = {}
    for name, scores in tests.items():
        if (label := scores.get("only_class")) is not None:
            said.setdefault(label, []).append(f"'{name}'")
    return [
        f"The model predicts the class '{classes[label]}' for every image of test {' and '.join(names)}: it tells no "
        "classes apart there."
        for label, names in said.items()
    ]


def nothing_learned_warnings(model: nn.Module, data: Dataset, progress: Progress) -> list[str]:
    """A sentence if the network predicts one class for all that it was trained on."""
    label = only_class(model, data.train, of_stage(progress, "result on train"))
    if label is None:
        return []
    return [
        f"The training ended with a network that predicts the class '{data.classes[label]}' for every training image: "
        "it has learned nothing; lower the learning rate (`unspur probe` finds the highest that converges)."
    ]


def lopsided_warnings(result: Predictions, data: Dataset) -> list[str]:
    """A sentence if the model predicts one class for many more of the validation images than are of it."""
    if len(data.val) < ENOUGH:
        return []
    known = torch.bincount(data.val.y, minlength=len(data.classes)) / len(data.val)
    said = torch.bincount(result.of(data.val, "validation").argmax(1), minlength=len(data.classes)) / len(data.val)
    label = int((said - known).argmax())
    if said[label] - known[label] < LOPSIDED:
        return []
    return [
        f"The model predicts the class '{data.classes[label]}' for {100 * float(said[label]):.0f} % of the validation "
        f"images, of which {100 * float(known[label]):.0f} % are: it errs towards that class."
    ]


def no_change_warnings(before: Predictions, after: Predictions, data: Dataset) -> list[str]:
    """A sentence if a repair predicts what its baseline does for every test image, or validation image if none is."""
    shown = {f"test '{name}'": test for name, test in data.tests.items() if len(test)} or {"validation": data.val}
    count = sum(map(len, shown.values()))
    if not count or any(bool((before.of(s, n).argmax(1) != after.of(s, n).argmax(1)).any()) for n, s in shown.items()):
        return []
    images = f"{count:,} images of {' and '.join(shown)}"
    return [f"The repair changed nothing: the result predicts the same as before for all {images}."]
