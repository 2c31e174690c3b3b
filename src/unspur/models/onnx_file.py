"""A classifier in an ONNX file: images to class scores, in the layout and the batches that the file asks for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from unspur.errors import UnspurError, require

Layout = Literal["floats", "bytes", "bytes, channels last"]


class OnnxFile:
    """The model in the file ``path``; its first output is the class scores."""

    def __init__(self, path: Path) -> None:
        require(path.is_file(), f"The model {path} is not a file; name an ONNX file.")
        self.path, self._session = path, _session(path)
        entries = self._session.get_inputs()
        self._input, self._shape = entries[0].name, list(entries[0].shape)
        self._layout = _layout(entries[0].type, self._shape) if len(entries) == 1 else None
        require(
            self._layout is not None,
            f"{path} takes {len(entries)} input{'s' * (len(entries) > 1)}, the first {entries[0].type} of shape "
            f"{self._shape}, but it must take one batch of images: floats (n, 3, height, width) or bytes "
            "(n, height, width, 3); export it with such an input.",
        )
        self.outputs = tuple(output.name for output in self._session.get_outputs())
        self._last: tuple[Tensor, list[Tensor]] | None = None
        at = 1 if self._layout == "bytes, channels last" else 2
        self._size, self._channels = self._shape[at : at + 2], self._shape[3 if at == 1 else 1]

    @property
    def side(self) -> int | None:
        """The longer side, in pixels, of the images that it takes; None: any."""
        return max((size for size in self._size if isinstance(size, int)), default=None)

    @property
    def content(self) -> str:
        """A hash of the file, which tells it from other models."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()[:32]

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the file's author wrote into it (``metadata_props``)."""
        found: Mapping[str, str] = self._session.get_modelmeta().custom_metadata_map
        return found

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes where the file has them, else none."""
        try:
            names = json.loads(self.metadata.get("labels", "[]"))
        except ValueError:
            names = []  # not class names: other programs use this key for something else
        return tuple(names) if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()

    def __call__(self, images: Tensor) -> Tensor:
        """The scores of images (n, 3, height, width), bytes or floats in [0, 1]."""
        return self._all(images)[0]

    def output(self, name: str) -> Callable[[Tensor], Tensor]:
        """A function that computes another output; it does not run again on images that were scored just before."""
        place = self.outputs.index(name)
        return lambda images: self._all(images)[place]

    def _all(self, images: Tensor) -> list[Tensor]:
        if self._last is None or self._last[0] is not images:
            self._last = images, self._outputs_for(images)
        return self._last[1]

    def _outputs_for(self, images: Tensor) -> list[Tensor]:
        size = [
            fixed if isinstance(fixed, int) else own for fixed, own in zip(self._size, images.shape[2:], strict=True)
        ]
        if list(images.shape[2:]) != size:
            images = functional.interpolate(_floats(images), size=size, mode="bilinear", antialias=True)
        if self._layout == "floats":
            images = _floats(images)
            images = images.mean(1, keepdim=True) if self._channels == 1 else images
        else:
            images = images if images.dtype == torch.uint8 else (images.clamp(0, 1) * 255).round().to(torch.uint8)
            images = images if self._layout == "bytes" else images.permute(0, 2, 3, 1)
        batch = self._shape[0] if isinstance(self._shape[0], int) else None
        parts = [self._run(part, batch) for part in images.split(batch or len(images))]
        return [torch.cat(own) for own in zip(*parts, strict=True)]

    def scores(self, images: Tensor) -> Tensor:
        """The scores of images that are already in the form that the file takes."""
        return self._run(images, None)[0]

    def _run(self, images: Tensor, batch: int | None) -> list[Tensor]:
        n = len(images)
        if batch and n < batch:
            images = torch.cat([images, images[-1:].expand(batch - n, -1, -1, -1)])
        try:
            found = self._session.run(None, {self._input: images.contiguous().numpy()})
        except Exception as error:  # its errors have no common class
            raise UnspurError(
                f"{self.path} fails on images of shape {tuple(images.shape)} ({_reason(error)}); export it for them."
            ) from None
        return [torch.from_numpy(output)[:n] for output in found]


def _layout(kind: str, shape: list[Any]) -> Layout | None:
    """What the input takes; None: no images."""
    if len(shape) != 4:
        return None
    if kind == "tensor(float)" and (shape[1] in (1, 3) or not isinstance(shape[1], int)):
        return "floats"
    if kind == "tensor(uint8)":
        return "bytes, channels last" if shape[3] == 3 else "bytes" if shape[1] == 3 else None
    return None


def _floats(images: Tensor) -> Tensor:
    return images.float() / 255 if images.dtype == torch.uint8 else images


def _session(path: Path) -> Any:  # onnxruntime brings no types
    try:
        import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ModuleNotFoundError:
        raise UnspurError(f"{path.name} needs one more package: pip install onnxruntime.") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    # Threads that wait in a loop would take the processors from those that decode the next images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as above
        raise UnspurError(
            f"{path} is not an ONNX model that can be read ({_reason(error)}); export it again."
        ) from None


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:120]
