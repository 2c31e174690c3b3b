"""Every classifier of torchvision, by its own name."""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unspur.data.base import Dataset
from unspur.errors import DataMissing, require
from unspur.models.base import last_layer
from unspur.models.spec import IMAGENET, ArchSpec, Statistics
from unspur.models.torchvision_compat import import_torchvision

_WITH_SIDE_HEADS = ("googlenet", "inception_v3")
_SIDE_HEADS = ("aux1.", "aux2.", "AuxLogits.")  # what those call them
# Their weights were trained on pixels from -1 to 1. torchvision can convert ImageNet's normalisation to that inside the
# network; here the first layer normalises that way, and it is stored with the weights.
_FROM_MINUS_ONE = Statistics((0.5,) * 3, (0.5,) * 3)


@dataclass(frozen=True)
class Torchvision(ArchSpec):
    """A classifier of torchvision, exactly as built there, with a head for the data's classes.

    It takes three channels: a grey image is repeated. Weights trained on ImageNet come with ImageNet's normalisation
    instead of the data's. ResNets keep their ImageNet stem on small images, as in DCWP E.2 and large-LR C.
    """

    rgb: ClassVar[bool] = True
    published: ClassVar[bool] = True
    weights: str = "none"  # none, default, one of torchvision's own names (such as IMAGENET1K_V1), or a file

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.name, dataclasses.asdict(self))

    @property
    def weights_file(self) -> Path | None:
        return None if self._enum() else super().weights_file

    def statistics(self, data: Dataset) -> Statistics | None:
        if self.weights == "none":
            return super().statistics(data)
        return _FROM_MINUS_ONE if self.name in _WITH_SIDE_HEADS else IMAGENET

    def adapt(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.name in _WITH_SIDE_HEADS:
            return {name: value for name, value in state.items() if not name.startswith(_SIDE_HEADS)}
        if self.name.startswith("densenet"):  # its files have layer names from before 2018, such as norm.1 for norm1
            return {re.sub(r"(\.denselayer\d+\.\w+)\.(\d\.)", r"\1\2", name): t for name, t in state.items()}
        return state

    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        build = import_torchvision().models.get_model_builder(self.name)
        enum = self._enum()
        if enum is None:
            net: nn.Module = build(weights=None, num_classes=classes, **self._extra(sample_shape))
            return net
        try:
            net = build(weights=enum, progress=sys.stderr.isatty())
        except (OSError, RuntimeError) as error:
            raise DataMissing(
                f"The published weights of {self.name} cannot be downloaded ({error}); get {enum.url} elsewhere "
                f"and use --set arch.weights=FILE."
            ) from None
        if self.name in _WITH_SIDE_HEADS:
            net.transform_input = False  # type: ignore[assignment]
        return _with_head(net, classes)

    def _extra(self, sample_shape: torch.Size) -> dict[str, Any]:
        """Arguments that some builders need when they load no weights themselves."""
        if self.name in _WITH_SIDE_HEADS:
            return {"aux_logits": False, "init_weights": True}
        if self.name.startswith("vit_"):
            _, height, width = self.images(sample_shape)
            patch = int(self.name.rpartition("_")[2])
            require(
                height == width and height % patch == 0,
                f"{self.name} needs square images with sides of a multiple of {patch} pixels, but these are "
                f"{height}x{width}; use other images or another arch.",
            )
            return {"image_size": height}
        return {}

    def _enum(self) -> Any:
        """The published weights that ``weights`` names, as torchvision knows them, or None."""
        known = import_torchvision().models.get_model_weights(self.name).__members__
        return known.get("DEFAULT" if self.weights == "default" else self.weights)


def _with_head(net: nn.Module, classes: int) -> nn.Module:
    """``net`` with a new random last layer for ``classes``, unless it has that many already."""
    name, old = last_layer(net)
    if len(old.weight) == classes:
        return net
    if isinstance(old, nn.Linear):
        new: nn.Module = nn.Linear(old.in_features, classes)
    else:
        new = nn.Conv2d(old.in_channels, classes, kernel_size=1)
    net.set_submodule(name, new)
    return net


def torchvision_names() -> list[str]:
    """The names of torchvision's classifiers."""
    models = import_torchvision().models
    names: list[str] = models.list_models(module=models)
    return names


@functools.cache
def torchvision_arch(name: str) -> type[Torchvision]:
    """The architecture that torchvision calls ``name``, as a separate class, like every architecture."""
    return type("Torchvision", (Torchvision,), {"name": name, "__doc__": Torchvision.__doc__, "__module__": __name__})


def _rebuild(name: str, fields: dict[str, Any]) -> Torchvision:
    return torchvision_arch(name)(**fields)
