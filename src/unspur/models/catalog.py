"""The architectures by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unspur.core.options import from_json, make
from unspur.data.base import Dataset
from unspur.errors import unknown
from unspur.models.classifier import Classifier
from unspur.models.cnn2 import CNN2
from unspur.models.cnn3 import CNN3
from unspur.models.efficientnet_lite import EfficientNetLite0, EfficientNetLite1, EfficientNetLite2
from unspur.models.fcn import FCN
from unspur.models.resnet32 import ResNet32
from unspur.models.small_cnn import SmallCNN
from unspur.models.spec import ArchSpec
from unspur.models.torchvision_archs import torchvision_arch, torchvision_names
from unspur.models.vgg11 import VGG11

_LITE = (EfficientNetLite0, EfficientNetLite1, EfficientNetLite2)
_OWN: tuple[type[ArchSpec], ...] = (FCN, SmallCNN, CNN3, CNN2, VGG11, ResNet32, *_LITE)
ARCHS: dict[str, type[ArchSpec]] = {arch.name: arch for arch in _OWN}  # and every name of torchvision's, see arch_named


def arch_named(name: str) -> ArchSpec:
    """The architecture ``name`` with its defaults: one of ARCHS, else a classifier of torchvision."""
    if name in ARCHS:
        return ARCHS[name]()
    theirs = torchvision_names()
    if name not in theirs:
        raise unknown("arch", name, [*ARCHS, *theirs])
    return torchvision_arch(name)()


def arch_from_json(value: Mapping[str, Any]) -> ArchSpec:
    """The architecture that ``to_json`` described."""
    arch: ArchSpec = from_json(value, type(arch_named(value["name"])))
    return arch


def build_model(name: str, data: Dataset, seed: int = 0, **options: Any) -> Classifier:
    """A model for ``data``: ``build_model("fcn", data, width=200)``."""
    return make(type(arch_named(name)), name, options).build(data, seed)
