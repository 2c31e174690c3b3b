"""The model that an audit tests: its own quick one, a stored run, an ONNX file, or any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.errors import require
from unspur.metrics.groups import wilson_interval
from unspur.practice.audit.collect import Collected

BATCH = 64

Predict = Callable[[Tensor], Tensor]  # floats in [0, 1], (n, 3, s, s), to class scores (n, classes)


@dataclass(frozen=True, eq=False)
class Insight:
    """What can be seen of a model beyond its answers."""

    modules: tuple[nn.Module, ...]  # one for each function of the model
    shape: Sequence[int]  # channels, height and width of the images that they take
    features: Tensor | None = None  # of every picture, by a network that none of them was trained on


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier of images, and which of the audit's pictures it has not been trained on.

    ``predict`` has one function for each of ``parts`` (numbers of pictures), on which that function was not trained.
    """

    name: str
    predict: tuple[Predict, ...]
    parts: tuple[Tensor, ...]
    insight: Insight | None = None  # None: only its answers are known

    def scores(self, data: Collected) -> Tensor:
        """The class scores of each image by a model that was not trained on it; NaN where there is none."""
        result = torch.full((len(data.y), len(data.classes)), torch.nan)
        for predict, part in zip(self.predict, self.parts, strict=True):
            for index in part.split(BATCH):
                scores = predict(data.pictures[index].float() / 255)
                check_scores(scores, len(index), data.classes, self.name)
                result[data.pictured[index]] = scores
        return result

    def predictions(self, data: Collected) -> Tensor:
        """The class of each image by a model that was not trained on it; -1 where there is none."""
        return most_likely(self.scores(data))

    def balanced(self, predicted: Tensor, y: Tensor) -> float | None:
        """The mean over classes of the accuracy where there is a prediction."""
        known = predicted >= 0
        recalls = [(predicted == y)[known & (y == label)].float().mean() for label in y[known].unique()]
        return float(torch.stack(recalls).mean()) if recalls else None

    def accuracy_on(
        self, predicted: Tensor, y: Tensor, chosen: tuple[int, ...] | None
    ) -> tuple[float | None, tuple[float, float] | None]:
        """The accuracy on images ``chosen`` and its interval; None without any."""
        numbers = torch.tensor(chosen or (), dtype=torch.long)
        numbers = numbers[predicted[numbers] >= 0] if len(numbers) else numbers
        if not len(numbers):
            return None, None
        right = int((predicted[numbers] == y[numbers]).sum())
        return right / len(numbers), wilson_interval(right, len(numbers))


def most_likely(scores: Tensor) -> Tensor:
    """The class of each image; -1 where there are no scores."""
    return torch.where(scores.isnan().any(1), -1, scores.argmax(1))


def check_scores(scores: Tensor, n: int, classes: Sequence[str], name: str) -> None:
    """Raise an error for a model whose output is not one score per class."""
    shape = " x ".join(map(str, scores.shape[1:])) if scores.shape[:1] == (n,) and scores.dim() > 1 else "no"
    require(
        scores.shape == (n, len(classes)),
        f"{name} gives {shape} scores an image, but the data has {len(classes)} classes "
        f"({', '.join(classes[:5])}{', ...' if len(classes) > 5 else ''}); name a model of these classes.",
    )


@dataclass(frozen=True)
class ModelToTest:
    """A model for which the images to test it on are not known yet."""

    name: str
    content: str  # what tells it from other models, such as a hash of its file: part of an audit's key
    make: Callable[[Collected], Model]
    side: int | None = None  # pixels that it is used to; None: any
    run: str | None = None  # the folder of the run that it comes from


def given_model(
    name: str, predict: Predict, classes: Sequence[str], content: str = "", side: int | None = None
) -> ModelToTest:
    """A model that was not trained on any of the audit's images; ``classes`` are those of its scores, in order."""

    def make(data: Collected) -> Model:
        return Model(name, (of_classes(predict, classes, data.classes, name),), (torch.arange(len(data.pictures)),))

    return ModelToTest(name, content or name, make, side)


def of_classes(predict: Predict, known: Sequence[str], wanted: Sequence[str], name: str) -> Predict:
    """Scores of the classes ``wanted`` only: an audit leaves out small classes, but a model may still have them."""
    columns = [list(known).index(each) for each in wanted]

    def chosen(images: Tensor) -> Tensor:
        scores = predict(images)
        check_scores(scores, len(images), known, name)
        return scores[:, columns]

    return chosen


def module_predict(module: nn.Module, shape: Sequence[int]) -> Predict:
    """A torch module that takes images of ``shape`` (channels, height, width)."""
    module, (channels, *size) = module.eval(), shape

    @torch.no_grad()
    def predict(images: Tensor) -> Tensor:
        if list(images.shape[2:]) != size:
            images = functional.interpolate(images, size=size, mode="bilinear", antialias=True)
        scores: Tensor = module(images if channels == 3 else images.mean(1, keepdim=True))
        return scores

    return predict
