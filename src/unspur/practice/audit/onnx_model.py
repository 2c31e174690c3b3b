"""A classifier in an ONNX file, as a model that an audit tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from unspur.errors import require
from unspur.models.onnx_file import OnnxFile
from unspur.practice.audit.model import ModelToTest, check_scores, given_model

TRIED = 128  # side of the images that a model is tried on if it takes any size


def onnx_model(path: Path, classes: Sequence[str]) -> ModelToTest:
    """The model in the file ``path``, whose scores are of ``classes``, tried on grey images."""
    model = OnnxFile(path)
    known = model.labels or tuple(classes)  # without names in the file, the data's classes
    strange = [name for name in classes if name not in known]
    require(not strange, f"{path} does not know the class '{strange and strange[0]}'; it knows {', '.join(known)}.")
    check_scores(model(torch.full((2, 3, TRIED, TRIED), 0.5)), 2, known, str(path))
    return given_model(str(path), model, known, model.content, model.side)
