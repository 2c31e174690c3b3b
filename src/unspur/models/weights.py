"""Weights from a file into a model; whatever does not fit is named."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from unspur.core.files import read_tensors
from unspur.errors import UnspurError, require
from unspur.models.base import last_layer
from unspur.models.classifier import Classifier, Normalize

Adapt = Callable[[dict[str, Tensor]], dict[str, Tensor]]  # renames the tensors of a published file to the names here

# What torch.load raises for files that hold something else: a text may begin like a pickle but not continue like one.
_UNREADABLE = (
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    OverflowError,
    MemoryError,
)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a torch state dict read without running any code in it.

    torchvision's file names end with the first digits of the file's hash; a file with such a name must have that hash.
    """
    if not path.exists():
        raise UnspurError(f"The weights file {path} does not exist; arch.weights must be none or name a file.")
    if not path.is_file():
        raise UnspurError(f"arch.weights must name a file of weights, but {path} is none.")
    _require_named_hash(path)
    if path.suffix == ".safetensors":
        return read_tensors(path)[0]
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UnspurError(f"The weights file {path} cannot be read ({error.strerror or error}).") from None
    except _UNREADABLE:
        raise UnspurError(f"{path} is neither a safetensors file nor a plain torch state dict; convert it.") from None
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise UnspurError(f"{path} holds more than a state dict; save only the model's state_dict().")
    return dict(state)


def _require_named_hash(path: Path) -> None:
    named = re.search(r"-([0-9a-f]{8,64})\.pth$", path.name)
    if named is None:
        return
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UnspurError(f"The weights file {path} cannot be read ({error.strerror or error}).") from None
    require(
        found.startswith(named[1]),
        f"{path} is damaged or another file: by its name its SHA-256 begins with {named[1]}, but it begins with "
        f"{found[: len(named[1])]}; get it again, or rename it if that part of its name is no hash.",
    )


def load_weights(model: Classifier, path: Path, adapt: Adapt = dict) -> None:
    """Load ``path`` into ``model``.

    The file is either a whole model as written by a run, whose normalisation then replaces the model's, or the state
    dict of the bare network, which ``adapt`` renames to the network's names. A head for another number of classes is
    not loaded: the model keeps the one it was built with.
    """
    state = read_weights(path)
    prefix = "net." if any(name.startswith("net.") for name in state) else ""
    state = state if prefix else adapt(state)
    head, layer = last_layer(model.net)
    stored = state.get(f"{prefix}{head}.weight")
    if stored is not None and stored.shape[1:] == layer.weight.shape[1:] and len(stored) != len(layer.weight):
        state |= {f"{prefix}{head}.{name}": parameter for name, parameter in layer.named_parameters()}
    load_state(model, state, str(path))


def load_state(model: Classifier, state: Mapping[str, Tensor], source: str) -> None:
    """Load all of ``state``, which came from ``source``: a whole model's or the bare network's."""
    if any(name.startswith("net.") for name in state):
        mean, std = state.get("normalize.mean"), state.get("normalize.std")
        if mean is not None and std is not None:
            model.normalize = Normalize(mean.flatten().tolist(), std.flatten().tolist())
        else:
            model.normalize = nn.Identity()
        state = {name.removeprefix("net."): t for name, t in state.items() if not name.startswith("normalize.")}
    if misfit := _misfit(state, model.net.state_dict()):
        raise UnspurError(f"{source} does not fit {model.arch}: {misfit}.")
    own = model.net.state_dict()  # it holds version numbers, without which some networks refuse to load
    own.update(state)
    model.net.load_state_dict(own)


def _misfit(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> str:
    """Why ``state`` does not fit ``wanted``, naming the first case of each kind; empty if it fits."""
    # Batch norm got its counters of batches late. Older files lack them, and they only matter without momentum.
    lacks = [name for name in wanted if name not in state and not name.endswith("num_batches_tracked")]
    strange = [name for name in state if name not in wanted]
    other = [name for name in wanted if name in state and state[name].shape != wanted[name].shape]
    parts = []
    if lacks:
        parts.append(f"it lacks '{lacks[0]}'{_more(lacks)}")
    if strange:
        parts.append(f"the model has no '{strange[0]}'{_more(strange)}")
    if other:
        stored, built = (_size(tensors[other[0]]) for tensors in (state, wanted))
        parts.append(f"'{other[0]}' is {stored} and should be {built}{_more(other)}")
    return ", ".join(parts)


def _more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more like it)" if len(names) > 1 else ""


def _size(tensor: Tensor) -> str:
    return "x".join(str(length) for length in tensor.shape) or "a single number"
