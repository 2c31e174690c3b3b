"""Images with maps of where a model looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.models.base import cam_layer
from unspur.report.pictures import heat, picture
from unspur.saliency.cam import cam
from unspur.saliency.gradients import input_gradients


@dataclass(frozen=True)
class Layer:
    """A map to lay over an image."""

    name: str
    uri: str


@dataclass(frozen=True)
class Tile:
    """One image with its maps, what it shows and what the model says."""

    image: str
    layers: tuple[Layer, ...]
    truth: str
    predicted: str
    right: bool
    index: int


class Explainer(NamedTuple):
    """How to ask a model where it looks: ``maps`` takes images in [0, 1] and gives one map each."""

    name: str
    sentence: str
    maps: Callable[[Tensor], Tensor]


def explainer(model: nn.Module, sample_shape: torch.Size) -> Explainer:
    """XGradCAM where the model has a spatial layer, input gradients where it has none."""
    try:
        layer = cam_layer(model, sample_shape)
    except UnspurError:
        look = by_gradients(model)
        return look._replace(sentence=f"This model has no spatial layer, so a {look.sentence[2:]}")
    return Explainer(
        "XGradCAM",
        "A map shows how much each place adds to the score of the predicted class (XGradCAM).",
        lambda x: cam(model, x, layer=layer, kind="xgradcam"),
    )


def by_gradients(model: nn.Module) -> Explainer:
    """The size of the input gradient at each pixel."""
    return Explainer(
        "input gradient",
        "A map shows the size of the input gradient: how strongly the predicted class's score reacts to each pixel.",
        lambda x: input_gradients(model, x).abs().amax(1),
    )


def tiles(
    split: Split, index: Tensor, predicted: Tensor, classes: Sequence[str], explain: Explainer
) -> tuple[Tile, ...]:
    """The images of ``split`` at ``index`` with their maps; ``predicted`` are the classes of all its samples."""
    if not len(index):
        return ()
    batch = split.batch(index)
    images, maps = split.x[index], explain.maps(batch.x)
    return tuple(
        Tile(picture(image), (Layer(explain.name, heat(values)),), classes[truth], classes[said], truth == said, number)
        for image, values, truth, said, number in zip(
            images, maps, batch.y.tolist(), predicted[index].tolist(), index.tolist(), strict=True
        )
    )
