"""Read pickled arrays of bytes without running what a pickle may ask for.

Unpickling calls whatever the file names. CIFAR's batches need dicts, lists, text, whole numbers and arrays of bytes, so
this reader offers stand-ins for the three names that a pickled array asks for and refuses every other name.
"""

from __future__ import annotations

import io
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspur.errors import UnspurError


def read_pickle(content: bytes, path: Path) -> Any:
    """What is pickled in ``content``, arrays as ``PickledArray``; ``path`` is for messages."""
    try:
        return _Reader(content, path).load()
    except UnspurError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnspurError(f"{path} is damaged ({reason}); get it again.") from None


class PickledArray:
    """An array as its pickle describes it."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, kind, fortran, content = state
        if not isinstance(kind, _Kind) or kind.name not in ("u1", "|u1") or not isinstance(content, bytes):
            raise ValueError("an array of something else than bytes")
        if not all(type(side) is int and side >= 0 for side in shape) or math.prod(shape) != len(content):
            raise ValueError("an array whose shape does not fit its content")
        self.array: NDArray[np.uint8] = np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


class _Kind:
    """The type of an array's elements."""

    def __init__(self, name: str | bytes, *_: object) -> None:
        self.name = name.decode("ascii") if isinstance(name, bytes) else name

    def __setstate__(self, state: object) -> None:
        """Byte order and alignment, which single bytes do not have."""


def _begin_array(*_: object) -> PickledArray:
    return PickledArray()


def _to_bytes(text: str, encoding: str) -> bytes:
    """What Python 3 writes into old pickles for bytes."""
    if encoding != "latin1":
        raise ValueError(f"text in the encoding {encoding}")
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _begin_array,
    ("numpy._core.multiarray", "_reconstruct"): _begin_array,
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _to_bytes,
}


class _Reader(pickle.Unpickler):
    def __init__(self, content: bytes, path: Path) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")  # text of Python 2 stays as it is
        self._path = path

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise UnspurError(
                f"{self._path} asks for {module}.{name}, which no array of images needs, so it was not read; it may be "
                "malicious: get the file again from its authors."
            ) from None
