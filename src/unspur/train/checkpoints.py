"""Any nested state as one safetensors file: tensors as tensors, the rest as JSON in its header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from unspur.core.files import read_tensors, write_tensors


def save_state(path: Path, state: Any) -> None:
    """Write nested dicts, lists, numbers, strings and tensors, such as an optimiser's state, atomically."""
    tensors: dict[str, Tensor] = {}
    skeleton = _pack(state, tensors)
    write_tensors(path, tensors, note=skeleton)


def load_state(path: Path) -> Any:
    """Read what ``save_state`` wrote."""
    tensors, skeleton = read_tensors(path)
    return _unpack(skeleton, tensors)


def _pack(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        name = f"t{len(tensors)}"
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, dict):  # as pairs: JSON would turn an optimiser's integer keys into strings
        return {"dict": [[key, _pack(item, tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [_pack(item, tensors) for item in value]
    return value


def _unpack(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, tensors) for item in value]
    if isinstance(value, dict):
        if "tensor" in value:
            return tensors[value["tensor"]]
        return {key: _unpack(item, tensors) for key, item in value["dict"]}
    return value
