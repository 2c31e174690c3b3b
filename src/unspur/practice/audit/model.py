"""The model that an audit tests: a quick one on frozen features, a stored run, an ONNX file, or any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.seeds import seeded, stream
from unspur.data.base import Dataset, Split
from unspur.errors import UnspurError, require
from unspur.metrics.groups import wilson_interval
from unspur.models.efficientnet_lite import EfficientNetLite0
from unspur.models.inference import WORTH_CONVERTING, fastest
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.leak_scores import standardised

BATCH = 64
FEATURE_SIDE = 128  # pixels that frozen features are computed at
STRENGTH = 1e-2  # L2 penalty of the logistic head on standardised features
STEPS = 60  # of L-BFGS

Predict = Callable[[Tensor], Tensor]  # floats in [0, 1], (n, 3, s, s), to class scores (n, classes)


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier of images, and which of the audit's pictures it has not been trained on.

    ``predict`` has one function for each of ``parts`` (numbers of pictures): on those it was not trained.
    """

    name: str
    predict: tuple[Predict, ...]
    parts: tuple[Tensor, ...]

    def predictions(self, data: Collected) -> Tensor:
        """The class of each image by a model that was not trained on it; -1 where there is none."""
        result = torch.full((len(data.y),), -1)
        for predict, part in zip(self.predict, self.parts, strict=True):
            for index in part.split(BATCH):
                scores = predict(data.pictures[index].float() / 255)
                check_scores(scores, len(index), data.classes, self.name)
                result[data.pictured[index]] = scores.argmax(1)
        return result

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


def check_scores(scores: Tensor, n: int, classes: Sequence[str], name: str) -> None:
    """Refuse a model whose output is not one score a class."""
    shape = " x ".join(map(str, scores.shape[1:])) if scores.shape[:1] == (n,) and scores.dim() > 1 else "no"
    require(
        scores.shape == (n, len(classes)),
        f"{name} gives {shape} scores an image, but the data has {len(classes)} classes "
        f"({', '.join(classes[:5])}{', ...' if len(classes) > 5 else ''}); name a model of these classes.",
    )


@dataclass(frozen=True)
class ModelToTest:
    """A model before the images are known that it is tested on."""

    name: str
    content: str  # what tells it from other models, such as a hash of its file: part of an audit's key
    make: Callable[[Collected], Model]
    side: int | None = None  # pixels that it is used to; None: any
    run: str | None = None  # the folder of the run that it comes from


def given_model(
    name: str, predict: Predict, classes: Sequence[str], content: str = "", side: int | None = None
) -> ModelToTest:
    """A model that knows none of the audit's images; ``classes`` are what its scores are of, in order."""

    def make(data: Collected) -> Model:
        return Model(name, (of_classes(predict, classes, data.classes, name),), (torch.arange(len(data.pictures)),))

    return ModelToTest(name, content or name, make, side)


def of_classes(predict: Predict, known: Sequence[str], wanted: Sequence[str], name: str) -> Predict:
    """Scores of the classes ``wanted`` only: an audit leaves small classes out, which a model still has."""
    columns = [list(known).index(each) for each in wanted]

    def chosen(images: Tensor) -> Tensor:
        scores = predict(images)
        check_scores(scores, len(images), known, name)
        return scores[:, columns]

    return chosen


def quick_model(data: Collected, *, seed: int = 0) -> Model:
    """Two models, each trained on one half of the pictures: frozen ImageNet features and a logistic head.

    Without the packages that bring the features, two small networks instead.
    """
    y = data.y[data.pictured]
    half = torch.randperm(len(y), generator=stream(seed, "audit halves")).tensor_split(2)
    try:
        extract = _frozen(seed)
    except UnspurError:
        nets = tuple(_small_network(data.pictures[part], y[part], len(data.classes), seed) for part in half)
        return Model("the audit's quick network", nets, (half[1], half[0]))
    features = torch.cat([extract(part.float() / 255) for part in data.pictures.split(BATCH)])
    heads = tuple(_head(features[part], y[part], len(data.classes)) for part in half)
    predict = tuple(_joined(extract, head) for head in heads)
    return Model("the audit's quick model", predict, (half[1], half[0]))


def _joined(extract: Predict, head: Predict) -> Predict:
    return lambda images: head(extract(images))


def _frozen(seed: int) -> Predict:
    """Features of the pretrained network; an UnspurError without its packages."""
    blank = Split(torch.zeros(2, 3, FEATURE_SIDE, FEATURE_SIDE, dtype=torch.uint8), torch.tensor([0, 1]))
    net = EfficientNetLite0().build(Dataset("audit", blank, blank, {}, ("0", "1")), seed=seed).eval()
    some = torch.rand(2, 3, FEATURE_SIDE, FEATURE_SIDE, generator=stream(seed, "audit features"))
    way = fastest(net, some, WORTH_CONVERTING)  # the swap test asks for the features of every picture many times

    def features(images: Tensor) -> Tensor:
        if images.shape[-1] != FEATURE_SIDE:
            images = functional.interpolate(images, size=FEATURE_SIDE, mode="bilinear", antialias=True)
        return way.features(images)

    return features


def _head(features: Tensor, y: Tensor, classes: int) -> Predict:
    """Logistic regression with balanced classes on standardised features."""
    mean, std = features.mean(0), features.std(0).clamp_min(1e-4)
    x = standardised(features)
    weight, bias = torch.zeros(classes, x.shape[1], requires_grad=True), torch.zeros(classes, requires_grad=True)
    balance = len(y) / (classes * torch.bincount(y, minlength=classes).clamp_min(1).float())
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = functional.cross_entropy(x @ weight.T + bias, y, weight=balance) + STRENGTH / 2 * (weight**2).sum()
        value.backward()
        return value

    optimiser.step(loss)
    fixed_weight, fixed_bias = weight.detach(), bias.detach()
    return lambda given: ((given - mean) / std).clamp(-5, 5) @ fixed_weight.T + fixed_bias


def _small_network(images: Tensor, y: Tensor, classes: int, seed: int) -> Predict:
    """A small convolutional network, for machines without pretrained weights."""
    with seeded(seed, "audit quick network"):
        layers: list[nn.Module] = []
        for before, after in ((3, 16), (16, 32), (32, 64)):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64 * 16, classes))
    epochs, batch = 8, 32
    steps = epochs * -(-len(y) // batch)
    optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps)
    generator = stream(seed, "audit quick order")
    for _ in range(epochs):
        for index in torch.randperm(len(y), generator=generator).split(batch):
            loss = functional.cross_entropy(net(images[index].float() / 255), y[index])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    net.eval()

    @torch.no_grad()
    def predict(given: Tensor) -> Tensor:
        scores: Tensor = net(given)
        return scores

    return predict


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
