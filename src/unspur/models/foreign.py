"""Use a classifier that was not trained here as if it were: torchvision's, timm's or any module, and its weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from unspur.errors import UnspurError, require
from unspur.models.base import evaluating
from unspur.models.catalog import arch_named
from unspur.models.classifier import Classifier, Normalize
from unspur.models.weights import load_state, read_weights

WRAPPERS = ("module.", "model.", "_orig_mod.", "backbone.")  # what training programs put before every name


class Wrapped(Classifier):
    """A model that takes pixels in [0, 1], normalises them itself, and knows the names of its classes."""

    def __init__(self, name: str, normalize: nn.Module, net: nn.Module, classes: Sequence[str], size: int) -> None:
        super().__init__(name, normalize, net)
        self.classes, self.size = tuple(classes), size


def wrap(
    network: nn.Module | str,
    classes: Sequence[str],
    *,
    size: int | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    weights: Path | str | None = None,
) -> Wrapped:
    """``network`` as a model that audits, repairs, predictions and analyses take.

    It is a module that takes images of three channels, or the name of an architecture (`unspur archs`). ``classes`` are
    the names of its outputs, in order. ``weights`` is a safetensors file, or a state dict in a file that torch reads
    without running code in it. ``size``, ``mean`` and ``std`` describe the images that the network expects. Their
    defaults are what a timm model says of itself; for other models, 224 pixels and no normalisation.
    """
    require(len(classes) >= 2, f"A classifier tells at least two classes apart, but got {len(classes)}.")
    require(len(set(classes)) == len(classes), "Two classes have the same name; give each its own.")
    note = getattr(network, "pretrained_cfg", None) or {}  # timm's
    side = size or int(note.get("input_size", (3, 224, 224))[-1])
    mean, std = mean or note.get("mean"), std or note.get("std")
    require((mean is None) == (std is None), "A normalisation has a mean and a std; give both or neither.")
    name = network if isinstance(network, str) else type(network).__name__
    if isinstance(network, str):
        with torch.random.fork_rng(devices=[]):  # the weights drawn here are overwritten by loading
            network = arch_named(network).network(torch.Size([3, side, side]), len(classes))
        require(weights is not None, f"{name} has no weights yet; name their file with weights=PATH.")
    first = nn.Identity() if mean is None or std is None else _normalize(mean, std)
    model = Wrapped(name, first, network, classes, side)
    if weights is not None:
        load_state(model, _bare(read_weights(Path(weights)), network), str(weights))
    _check(model)
    return model.eval()


def _normalize(mean: Sequence[float], std: Sequence[float]) -> Normalize:
    require(
        len(mean) == len(std) == 3 and min(std) > 0,
        f"mean and std are three numbers each, the latter above 0, but got {tuple(mean)} and {tuple(std)}.",
    )
    return Normalize(mean, std)


def _bare(state: dict[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """``state`` without a prefix that all of its names have but the network's names do not."""
    own = network.state_dict()
    for prefix in WRAPPERS:
        if state and all(name.startswith(prefix) for name in state) and not any(n.startswith(prefix) for n in own):
            return {name.removeprefix(prefix): value for name, value in state.items()}
    return state


def _check(model: Wrapped) -> None:
    """Pass two images through it: what it returns must be a score for each class."""
    images = torch.zeros(2, 3, model.size, model.size)
    try:
        with evaluating(model), torch.no_grad():
            scores = model(images)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise UnspurError(
            f"{model.arch} does not take images of 3x{model.size}x{model.size} ({reason}); give the size it was "
            "trained with."
        ) from None
    shape = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
    require(
        shape == (2, len(model.classes)),
        f"{model.arch} gives {shape} for two images instead of {len(model.classes)} scores each; name as many classes "
        "as it has, and wrap a module that returns scores alone.",
    )
