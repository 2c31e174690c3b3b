"""Weights from a file into a model; whatever does not fit is named."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from unspur.core.files import read_tensors
from unspur.errors import UnspurError
from unspur.models.base import last_layer
from unspur.models.classifier import Classifier, Normalize


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a torch state dict read without running any code in it."""
    if path.suffix == ".safetensors":
        return read_tensors(path)[0]
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UnspurError(f"The weights file {path} does not exist.") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError):
        raise UnspurError(f"{path} is neither a safetensors file nor a plain torch state dict; convert it.") from None
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise UnspurError(f"{path} holds more than a state dict; save only the model's state_dict().")
    return dict(state)


def load_weights(model: Classifier, path: Path) -> None:
    """Load ``path`` into ``model``.

    The file is a whole model as written by a run, whose normalisation then replaces the model's, or the state dict of
    the bare network. A head for another number of classes stays out, and the model keeps the one it was built with.
    """
    state = read_weights(path)
    prefix = "net." if any(name.startswith("net.") for name in state) else ""
    head, layer = last_layer(model.net)
    stored = state.get(f"{prefix}{head}.weight")
    if stored is not None and stored.shape[1:] == layer.weight.shape[1:] and len(stored) != len(layer.weight):
        state |= {f"{prefix}{head}.{name}": parameter for name, parameter in layer.named_parameters()}
    load_state(model, state, str(path))


def load_state(model: Classifier, state: Mapping[str, Tensor], source: str) -> None:
    """Load all of ``state``, of a whole model or of the bare network, which came from ``source``."""
    if any(name.startswith("net.") for name in state):
        mean, std = state.get("normalize.mean"), state.get("normalize.std")
        if mean is not None and std is not None:
            model.normalize = Normalize(mean.flatten().tolist(), std.flatten().tolist())
        else:
            model.normalize = nn.Identity()
        state = {name.removeprefix("net."): t for name, t in state.items() if not name.startswith("normalize.")}
    if misfit := _misfit(state, model.net.state_dict()):
        raise UnspurError(f"{source} does not fit {model.arch}: {misfit}.")
    model.net.load_state_dict(state, strict=False)


def _misfit(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> str:
    """What keeps ``state`` from being ``wanted``, the first case of each kind by name; empty if nothing does."""
    # Counters of batches came late to batch norm; files from before lack them, and they only matter without momentum.
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
