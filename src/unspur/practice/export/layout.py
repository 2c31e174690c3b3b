"""An exported folder: which files it holds, and how a model is read from it again.

model.onnx | model.pt2 | model.safetensors    the model, one of these
labels.json                                   the classes, in the order of the scores
config.json, preprocessor_config.json         what those used to timm and Hugging Face look for
abstention.json                               temperatures and thresholds, from validation data
README.md                                     the model card
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import nn

from unspur.core.files import read_json, read_tensors
from unspur.core.shapes import checked
from unspur.data.base import Dataset, Split
from unspur.data.images.decode import SquareFit
from unspur.errors import require
from unspur.methods.catalog import method_named
from unspur.models.catalog import arch_from_json

ONNX, TORCH, WEIGHTS = "model.onnx", "model.pt2", "model.safetensors"
LABELS, CONFIG, PREPROCESSOR, ABSTENTION, CARD = (
    "labels.json",
    "config.json",
    "preprocessor_config.json",
    "abstention.json",
    "README.md",
)


class Origin(TypedDict):
    """Facts about a model that only unspur needs."""

    version: str
    run: str  # its folder's name
    method: str
    arch: dict[str, Any]  # as in a run's config.json
    sample_shape: list[int]
    fit: SquareFit


class ExportedConfig(TypedDict):
    """config.json of an exported folder."""

    architectures: list[str]
    num_labels: int
    id2label: dict[str, str]
    label2id: dict[str, int]
    unspur: Origin


def read_exported(folder: Path) -> ExportedConfig:
    """config.json of ``folder``; an error names what is missing or has the wrong type."""
    config: ExportedConfig = checked(read_json(folder / CONFIG), ExportedConfig, str(folder / CONFIG))
    return config


def read_labels(folder: Path) -> list[str]:
    """The classes of an exported model."""
    return checked(read_json(folder / LABELS), list[str], str(folder / LABELS))


def exported_module(folder: Path, config: ExportedConfig) -> tuple[nn.Module, list[int]]:
    """The model of a folder with weights, and the shape of its inputs."""
    origin, labels = config["unspur"], read_labels(folder)
    shape = origin["sample_shape"]
    require(
        len(shape) == 3 and min(shape) > 0,
        f"{folder / CONFIG} has inputs of {shape}, which are no images; export the run again.",
    )
    blank = Split(torch.zeros(0, *shape, dtype=torch.uint8), torch.zeros(0, dtype=torch.long))
    data = Dataset("exported", blank, blank, {}, tuple(labels))
    weights, _ = read_tensors(folder / WEIGHTS)
    arch, grown = arch_from_json(origin["arch"]), method_named(origin["method"]).grown
    return arch.restore(data, weights, str(folder / WEIGHTS), grown).eval(), shape
