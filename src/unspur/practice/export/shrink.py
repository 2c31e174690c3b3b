"""Remove the channels that pruning left dead, so that the network is smaller and not only emptier (torch-pruning)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unspur.errors import UnspurError
from unspur.models.base import last_layer
from unspur.models.classifier import Classifier

LAYERS = (nn.Conv2d, nn.Linear)


class Shrunk(NamedTuple):
    """The smaller network, and how many of its weights and channels are gone."""

    model: Classifier
    removed: int  # channels
    weights_before: int
    weights_after: int


def shrink(model: Classifier, some: Tensor) -> Shrunk:
    """A copy of ``model`` without channels that nothing makes or nothing reads; ``some`` are inputs.

    Removing a channel that nothing reads changes nothing. A channel whose weights are all zero is a constant, the shift
    of the batch norm behind it. Without it the next layer is off by that constant's share, so the result must be
    compared with the model.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import torch_pruning  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ModuleNotFoundError:
        raise UnspurError(
            "--shrink needs one more package: pip install 'unspur[export]' (torch-pruning), or leave it out."
        ) from None
    small = copy.deepcopy(model).eval().requires_grad_(True)  # the layers' coupling is read from gradients
    before = _weights(small)
    removed = 0
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")
        graph = torch_pruning.DependencyGraph().build_dependency(small.net, example_inputs=small.normalize(some))
        for root, prune, dead in list(_dead_channels(graph, small.net)):
            group = graph.get_pruning_group(root, prune, idxs=dead)
            if graph.check_pruning_group(group):
                group.prune()
                removed += len(dead)
    return Shrunk(small.requires_grad_(False), removed, before, _weights(small))


def _dead_channels(graph: Any, net: Any) -> Iterator[tuple[nn.Module, Any, list[int]]]:
    """A layer, the function that prunes it, and the numbers of its dead channels, for each group of coupled layers."""
    _, head = last_layer(net)
    for group in graph.get_all_groups(ignored_layers=[head], root_module_types=list(LAYERS)):
        root = group[0].dep.target.module
        channels = len(group[0].idxs)
        made, read = (torch.zeros(channels, dtype=torch.bool) for _ in range(2))
        for item in group:
            layer, writes = item.dep.target.module, item.dep.handler.__name__ == "prune_out_channels"
            if not isinstance(layer, LAYERS):
                continue
            if isinstance(layer, nn.Conv2d) and layer.groups > 1:  # it only passes channels on
                continue
            used = _used(layer, writes)[torch.tensor(item.idxs)]
            places = torch.tensor(item.root_idxs)
            (made if writes else read).index_put_((places[used],), torch.tensor(True))
        dead = (~(made & read)).nonzero().squeeze(1).tolist()
        if dead:
            # A layer without any channel could not run; the channel that is kept is still dead.
            yield root, group[0].dep.handler, dead[1:] if len(dead) == channels else dead


def _used(layer: nn.Conv2d | nn.Linear, writes: bool) -> Tensor:
    """Which channels the layer makes, or reads, with at least one weight that is not zero."""
    weight = layer.weight.detach() != 0
    return weight.flatten(1).any(1) if writes else weight.transpose(0, 1).flatten(1).any(1)


def _weights(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
