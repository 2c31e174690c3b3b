"""How far vectors and networks can be compressed ("Large Learning Rates ...", arXiv:2507.17748, 3.2 and D.4).

The measures of vectors work along the last dimension and return one value for each vector: for activations of shape
(samples, neurons), the mean of the result is what the paper reports (C). Pruning works on a copy of any model.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from unspur.errors import require

Unit = Literal["node", "column", "weight"]
Layer = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d

KAPPAS = tuple(step / 10 for step in range(10))  # "from 0 to 0.9" (3.2); the paper leaves the step open


def sparsity(z: Tensor) -> Tensor:
    """The share of zeros: 1 - ||z||_0 / d (3.2).

    >>> sparsity(torch.tensor([[0.0, 3.0, 0.0, 1.0], [0.0, 0.0, 0.0, 2.0]]))
    tensor([0.5000, 0.7500], dtype=torch.float64)
    """
    return (z == 0).double().mean(-1)


def compressibility(z: Tensor, q: float = 2.0, kappa: float = 0.1) -> Tensor:
    """(q, kappa)-compressibility: 1 - inf ||z - y||_q / ||z||_q over all y with at most ceil(kappa d) entries (3.2).

    The best such y keeps the largest entries of z. A vector of zeros is kept whole by keeping nothing: 1.

    >>> compressibility(torch.tensor([3.0, 0.0, -4.0, 0.0]), q=2, kappa=0.25)  # -4 stays, 3 is lost: 1 - 3/5
    tensor(0.4000, dtype=torch.float64)
    """
    _check(kappa)
    require(0 < q < math.inf, f"The order q of a norm must be positive and finite, but got {q}.")
    kept = math.ceil(_share(kappa, z.shape[-1]))
    size = z.double().abs().sort(-1).values
    return 1 - _norm(size[..., : z.shape[-1] - kept], q) / _nonzero(_norm(size, q))


def pq_index(z: Tensor, p: float = 1.0, q: float = 2.0) -> Tensor:
    """The PQ-index of Diao et al. (2023), larger for sparser vectors: 1 - d^(1/q - 1/p) ||z||_p / ||z||_q, p < q.

    The paper (Figure 25) writes p = 2, q = 1. With the orders that way round the index would never be positive and
    would fall as vectors get sparser, so they are read the other way round. A vector of zeros has index 1.

    >>> pq_index(torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 5.0, 0.0]]))  # 1 - 4^(-1/2) 4/2, 1 - 4^(-1/2) 5/5
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """
    require(0 < p < q < math.inf, f"The PQ-index needs orders with 0 < p < q, but got p = {p} and q = {q}.")
    scale = math.pow(z.shape[-1], 1 / q - 1 / p)
    return 1 - scale * _norm(z.double(), p) / _nonzero(_norm(z.double(), q))


def layer_weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights of each linear and convolutional layer as one vector, by the layer's name.

    >>> {name: w.shape for name, w in layer_weights(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())).items()}
    {'0': torch.Size([18])}
    """
    return {name: layer.weight.detach().flatten() for name, layer in _layers(model).items()}


def prune(model: nn.Module, kappa: float, unit: Unit = "node", spare: nn.Module | None = None) -> nn.Module:
    """A copy of ``model`` with the smallest floor(kappa n) of each layer's n units set to 0 (3.2, Figures 20 and 21).

    - ``node``: an output of a linear layer, or an output channel of a convolution with its whole kernel, by the 2-norm
      of its weights; its bias goes with it. The last layer is spared: its nodes are the classes.
    - ``column``: all weights that read one input node or channel, by their 2-norm. The first layer is spared: its
      columns are the image.
    - ``weight``: a single weight, by its magnitude ("magnitude pruning"), in every layer.

    ``spare`` names another part of the model to leave alone, where its layers are not registered in the order in which
    they run. Only parameters of the layers themselves are set to 0, as the paper says: batch normalisation stays as it
    was, and turns a pruned kernel into a constant. Because of the floor, a layer loses all units at kappa = 1 only.

    >>> model = nn.Sequential(nn.Linear(1, 3, bias=False), nn.ReLU(), nn.Linear(3, 2))
    >>> _ = model[0].weight.data.copy_(torch.tensor([[2.0], [-3.0], [1.0]]))
    >>> prune(model, 0.7)[0].weight.flatten().tolist()
    [0.0, -3.0, 0.0]
    """
    _check(kappa)
    names = _prunable(model, unit, spare)
    pruned = copy.deepcopy(model)
    with torch.no_grad():
        for name, layer in _layers(pruned).items():
            if name in names:
                _zero_smallest(layer, kappa, unit)
    return pruned


class Prunability(NamedTuple):
    """Accuracy after pruning over accuracy before it, for each share pruned, and the mean of these ratios."""

    kappas: tuple[float, ...]
    retained: tuple[float, ...]
    mean: float

    @classmethod
    def of(cls, kappas: Sequence[float], whole: float, pruned: Sequence[float]) -> Prunability:
        """The ratios of accuracies after pruning to the ``whole`` network's.

        >>> Prunability.of((0.0, 0.5), 0.8, (0.8, 0.6)).mean
        0.875
        """
        require(whole > 0, "Prunability is a share of the accuracy before pruning, but that accuracy is 0.")
        retained = tuple(accuracy / whole for accuracy in pruned)
        return cls(tuple(kappas), retained, sum(retained) / len(retained))


def prunability(
    model: nn.Module,
    accuracy: Callable[[nn.Module], float],
    kappas: Sequence[float] = KAPPAS,
    unit: Unit = "node",
    spare: nn.Module | None = None,
) -> Prunability:
    """kappa-prunability Acc(f^(kappa)) / Acc(f) for each kappa, and its mean over them (3.2).

    The paper speaks of the sum over kappa = 0 ... 0.9, but the values of its Tables 1 and 2 are at most about 1: they
    are means. A ratio above 1 is possible: pruning may help.

    >>> model = nn.Sequential(nn.Linear(1, 4), nn.Linear(4, 2))
    >>> def left(m): return float((m[0].weight != 0).double().mean())
    >>> prunability(model, left, (0.0, 0.5, 0.75))
    Prunability(kappas=(0.0, 0.5, 0.75), retained=(1.0, 0.5, 0.25), mean=0.5833333333333334)
    """
    require(len(kappas) > 0, "Prunability needs at least one share kappa to prune, but got none.")
    whole = accuracy(model)
    pruned = [accuracy(prune(model, kappa, unit, spare)) if kappa else whole for kappa in kappas]
    return Prunability.of(kappas, whole, pruned)


def _check(kappa: float) -> None:
    require(0 <= kappa <= 1, f"kappa is a share and must be from 0 to 1, but got {kappa}.")


def _share(kappa: float, n: int) -> float:
    """kappa * n without the last bits of binary fractions: 0.29 * 100 is 29, and 0.07 * 100 no more than 7."""
    return round(kappa * n, 6)


def _norm(z: Tensor, order: float) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(z, order, dim=-1)
    return norm


def _nonzero(norm: Tensor) -> Tensor:
    return torch.where(norm == 0, torch.ones_like(norm), norm)


def _layers(model: nn.Module) -> dict[str, Layer]:
    return {name: module for name, module in model.named_modules() if isinstance(module, Layer)}


def _prunable(model: nn.Module, unit: Unit, spare: nn.Module | None) -> set[str]:
    """Names of the layers to prune."""
    layers = _layers(model)
    if spare is not None:
        inside = {id(module) for module in spare.modules()}
        require(
            any(id(module) in inside for module in model.modules()),
            "The part to spare from pruning is not a part of the model; pass one of its modules.",
        )
        names = {name for name, layer in layers.items() if id(layer) not in inside}
    else:
        spared = {"node": list(layers)[-1:], "column": list(layers)[:1], "weight": []}[unit]
        names = set(layers) - set(spared)
    require(
        bool(names),
        f"There is nothing to prune by {unit}: the model has {len(layers)} linear or convolutional layers, and none "
        "beside those to spare. Give a model with hidden layers.",
    )
    return names


def _zero_smallest(layer: Layer, kappa: float, unit: Unit) -> None:
    weight = layer.weight
    gone = torch.zeros(weight.shape, dtype=torch.bool, device=weight.device)
    if unit == "weight":
        gone.view(-1)[_smallest(weight.abs().flatten(), kappa)] = True
    else:
        dim = 0 if unit == "node" else 1
        gone.index_fill_(dim, _smallest(weight.transpose(0, dim).flatten(1).norm(dim=1), kappa), True)
    _zero(layer, "weight", gone)
    if unit == "node" and layer.bias is not None:
        _zero(layer, "bias", gone.flatten(1).all(1))


def _zero(layer: Layer, name: str, gone: Tensor) -> None:
    if parametrize.is_parametrized(layer, name):
        # Not remove_parametrizations: a copy shares its class with the original, which would lose its weight.
        parametrize.register_parametrization(layer, name, _Without(gone))
    else:
        layer.get_parameter(name).masked_fill_(gone, 0)


class _Without(nn.Module):
    gone: Tensor

    def __init__(self, gone: Tensor) -> None:
        super().__init__()
        self.register_buffer("gone", gone)

    def forward(self, weight: Tensor) -> Tensor:
        return weight.masked_fill(self.gone, 0)


def _smallest(size: Tensor, kappa: float) -> Tensor:
    return size.argsort(stable=True)[: math.floor(_share(kappa, len(size)))]
