"""The model that an audit trains itself: a logistic head on frozen features, or a small network if there are none."""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.seeds import seeded, stream
from unspur.data.base import Batch, Dataset, Split
from unspur.errors import UnspurError
from unspur.models.base import head_of
from unspur.models.efficientnet_lite import EfficientNetLite0
from unspur.models.inference import WORTH_CONVERTING, fastest
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.model import BATCH, Insight, Model, Predict, module_predict
from unspur.train.losses import Loss, cross_entropy

FEATURE_SIDE = 128  # pixels that frozen features are computed at
STRENGTH = 1e-2  # L2 penalty of the logistic head on standardised features
STEPS = 60  # of L-BFGS
CLIP = 5.0  # standard deviations to which features are clipped


class Head(NamedTuple):
    """Logistic regression on standardised features."""

    weight: Tensor  # (classes, features)
    bias: Tensor
    mean: Tensor
    deviation: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        return _clipped(features, self.mean, self.deviation) @ self.weight.T + self.bias

    @torch.no_grad()
    def give(self, net: nn.Module) -> nn.Module:
        """A copy of ``net`` whose last layer is this head, except that features are not clipped."""
        made = copy.deepcopy(net)
        last, weight = head_of(made), self.weight / self.deviation
        last.weight.copy_(weight)
        last.bias.copy_(self.bias - weight @ self.mean)
        return made


def quick_model(data: Collected, *, seed: int = 0) -> Model:
    """Two models, each trained on one half of the pictures: frozen ImageNet features and a logistic head.

    Without the packages that provide the features, it trains two small networks instead.
    """
    y, classes = data.y[data.pictured], len(data.classes)
    half = torch.randperm(len(y), generator=stream(seed, "audit halves")).tensor_split(2)
    parts = (half[1], half[0])
    try:
        net, extract = _frozen(classes, seed)
    except UnspurError:
        nets = tuple(_small_network(data.pictures[part], y[part], classes, seed) for part in half)
        predict = tuple(module_predict(net, data.pictures.shape[1:]) for net in nets)
        return Model("the audit's quick network", predict, parts, Insight(nets, data.pictures.shape[1:]))
    features = torch.cat([extract(part.float() / 255) for part in data.pictures.split(BATCH)])
    heads = tuple(fit_head(features[part], y[part], classes) for part in half)
    insight = Insight(tuple(head.give(net) for head in heads), (3, FEATURE_SIDE, FEATURE_SIDE), features)
    return Model("the audit's quick model", tuple(_joined(extract, head) for head in heads), parts, insight)


def _joined(extract: Predict, head: Head) -> Predict:
    return lambda images: head(extract(images))


def _frozen(classes: int, seed: int) -> tuple[nn.Module, Predict]:
    """The pretrained network and its features; an UnspurError without its packages."""
    blank = Split(torch.zeros(2, 3, FEATURE_SIDE, FEATURE_SIDE, dtype=torch.uint8), torch.tensor([0, 1]))
    names = tuple(map(str, range(classes)))
    net = EfficientNetLite0().build(Dataset("audit", blank, blank, {}, names), seed=seed).eval()
    some = torch.rand(2, 3, FEATURE_SIDE, FEATURE_SIDE, generator=stream(seed, "audit features"))
    way = fastest(net, some, WORTH_CONVERTING)  # the swap test asks for the features of every picture many times

    def features(images: Tensor) -> Tensor:
        if images.shape[-1] != FEATURE_SIDE:
            images = functional.interpolate(images, size=FEATURE_SIDE, mode="bilinear", antialias=True)
        return way.features(images)

    return net, features


def _clipped(features: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    return ((features - mean) / deviation).clamp(-CLIP, CLIP)


def fit_head(features: Tensor, y: Tensor, classes: int, loss: Loss = cross_entropy) -> Head:
    """Logistic regression with balanced classes on standardised features."""
    mean, deviation = features.mean(0), features.std(0).clamp_min(1e-4)
    x = _clipped(features, mean, deviation)
    batch = Batch(x, y, torch.arange(len(y)))
    weight, bias = torch.zeros(classes, x.shape[1], requires_grad=True), torch.zeros(classes, requires_grad=True)
    balance = 1 / (classes * torch.bincount(y, minlength=classes).clamp_min(1).float())
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def value() -> Tensor:
        optimiser.zero_grad()
        total = (loss(x @ weight.T + bias, batch) * balance[y]).sum() + STRENGTH / 2 * (weight**2).sum()
        total.backward()
        return total

    optimiser.step(value)
    return Head(weight.detach(), bias.detach(), mean, deviation)


def _small_network(images: Tensor, y: Tensor, classes: int, seed: int) -> nn.Module:
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
    return net.eval()
