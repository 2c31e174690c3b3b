"""A classifier in an ONNX file, as a model that an audit tests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from unspur.errors import UnspurError, require
from unspur.practice.audit.model import ModelToTest, Predict, check_scores, given_model

TRIED = 128  # pixels of the images that a model is tried on where it takes any size


def onnx_model(path: Path, classes: Sequence[str]) -> ModelToTest:
    """The model in the file ``path``, whose scores are of ``classes``, tried on grey images."""
    require(path.is_file(), f"The model {path} is not a file; name an ONNX file with --model.")
    session = _session(path)
    predict = _predict(session, path)
    check_scores(predict(torch.full((2, 3, TRIED, TRIED), 0.5)), 2, classes, str(path))
    content = hashlib.sha256(path.read_bytes()).hexdigest()[:32]
    side = max((size for size in session.get_inputs()[0].shape[2:] if isinstance(size, int)), default=None)
    return given_model(str(path), predict, classes, content, side)


def _session(path: Path) -> Any:  # onnxruntime brings no types
    try:
        import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ModuleNotFoundError:
        raise UnspurError(f"{path.name} needs one more package: pip install onnxruntime.") from None
    try:
        return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common class
        raise UnspurError(
            f"{path} is not an ONNX model that can be read ({_reason(error)}); export it again."
        ) from None


def _predict(session: Any, path: Path) -> Predict:
    """Images in [0, 1] to the first output, in batches of the size that the file asks for."""
    entries = session.get_inputs()
    shape: list[Any] = list(entries[0].shape)
    fits = len(shape) == 4 and (shape[1] in (1, 3) or not isinstance(shape[1], int))
    require(
        len(entries) == 1 and entries[0].type == "tensor(float)" and fits,
        f"{path} takes {len(entries)} input{'s' * (len(entries) > 1)}, the first {entries[0].type} of shape {shape}, "
        "but an audit gives it one batch of float images (n, 3, height, width); export it with such an input.",
    )
    batch = shape[0] if isinstance(shape[0], int) else None

    def predict(images: Tensor) -> Tensor:
        size = [
            fixed if isinstance(fixed, int) else own for fixed, own in zip(shape[2:], images.shape[2:], strict=True)
        ]
        if list(images.shape[2:]) != size:
            images = functional.interpolate(images, size=size, mode="bilinear", antialias=True)
        if shape[1] == 1:
            images = images.mean(1, keepdim=True)
        return torch.cat([_run(part) for part in images.split(batch or len(images))])

    def _run(images: Tensor) -> Tensor:
        n = len(images)
        if batch and n < batch:
            images = torch.cat([images, images[-1:].expand(batch - n, -1, -1, -1)])
        try:
            scores = session.run(None, {entries[0].name: images.contiguous().numpy()})[0]
        except Exception as error:  # as above
            raise UnspurError(
                f"{path} fails on images of shape {tuple(images.shape)} ({_reason(error)}); export it for them."
            ) from None
        return torch.from_numpy(scores)[:n]

    return predict


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:120]
