"""A gate on every weight of any network: sampled while it is learnt, then open or shut for good (DCWP, section 4)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypedDict

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils import parametrize
from torch.optim.optimizer import register_optimizer_step_post_hook

from unspur.errors import require

Masks = Mapping[str, Tensor]  # by the weight's name, such as 'net.0.weight'; True where it is kept


class _Weight(NamedTuple):
    module: nn.Module
    attribute: str


def prunable(model: nn.Module) -> dict[str, _Weight]:
    """The weights, not the biases, of every convolution, linear layer and attention projection, by name."""
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.modules.conv._ConvNd):
            found[f"{name}.weight".lstrip(".")] = _Weight(module, "weight")
        elif isinstance(module, nn.MultiheadAttention) and module.in_proj_weight is not None:
            found[f"{name}.in_proj_weight".lstrip(".")] = _Weight(module, "in_proj_weight")
    require(bool(found), f"{type(model).__name__} has no convolution and no linear layer, so nothing can be pruned.")
    return found


class _Sample(torch.autograd.Function):
    """Weights times a 0/1 sample; the gradient is that of the relaxed sample (straight-through)."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, theta: Tensor, temperature: float) -> Tensor:
        # The difference of two Gumbel variables is logistic: one uniform number per weight is enough. In place, because
        # on a CPU new memory costs more than the arithmetic.
        soft = torch.rand_like(theta).logit_().add_(theta)
        kept = weight * (soft > 0)
        ctx.save_for_backward(weight, soft.div_(temperature).sigmoid_())
        ctx.temperature = temperature
        return kept

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        weight, soft = ctx.saved_tensors
        slope = torch.addcmul(soft, soft, soft, value=-1).mul_(weight).mul_(grad)  # d soft / d theta = soft (1 - soft)
        return None, slope.div_(ctx.temperature), None


class Gate(nn.Module):
    """Keeps each weight with probability sigmoid(theta), sampled at each training pass; in evaluation if theta > 0.

    The sample is hard (0 or 1), its gradient that of the Gumbel-sigmoid at ``temperature``. Samples come from torch's
    global generator, as dropout's do. The weight itself gets no gradient. The authors' code applies the sigmoid twice,
    which never lets the probability fall below one half.
    """

    def __init__(self, weight: Tensor, start: float = 1.5, temperature: float = 1.0) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.full_like(weight, start))
        self.temperature = temperature

    def forward(self, weight: Tensor) -> Tensor:
        if self.training:
            kept: Tensor = _Sample.apply(weight, self.theta, self.temperature)  # type: ignore[no-untyped-call]
            return kept
        return weight * self.kept()

    def kept(self) -> Tensor:
        """True where the weight is more likely kept than not: sigmoid(theta) > 1/2."""
        return self.theta.detach() > 0


def add_gates(model: nn.Module, start: float = 1.5, temperature: float = 1.0) -> dict[str, Gate]:
    """Freeze ``model`` and put a gate on each of its prunable weights; the gates' theta is all that can be trained."""
    weights = prunable(model)
    model.requires_grad_(False)
    gates = {}
    for name, (module, attribute) in weights.items():
        gates[name] = Gate(getattr(module, attribute), start, temperature)
        parametrize.register_parametrization(module, attribute, gates[name])
    return gates


def sparsity(gates: Mapping[str, Gate], of: str) -> Tensor:
    """Eq. 11's sum over all gates: of |theta| as printed ('theta'), or of the keep probability ('keep').

    |theta| is least where a weight is kept with probability one half; the keep probability, which section 3.2
    penalises, is least where the weight is pruned.
    """
    size = torch.abs if of == "theta" else torch.sigmoid
    return torch.stack([size(gate.theta).sum() for gate in gates.values()]).sum()


def masks_of(gates: Mapping[str, Gate]) -> dict[str, Tensor]:
    """What each gate keeps."""
    return {name: gate.kept() for name, gate in gates.items()}


def kept_ratio(masks: Masks) -> float:
    """The share of all weights that is kept.

    >>> kept_ratio({"a": torch.tensor([True, False]), "b": torch.tensor([True, True, True])})
    0.8
    """
    return sum(int(mask.sum()) for mask in masks.values()) / sum(mask.numel() for mask in masks.values())


NEARLY_ALL = 0.99  # share of the weights: if more are kept, pruning cannot have done much
PRUNE_MORE = "to prune more, raise masks.steps, masks.lr or masks.l1, or lower masks.start"


class PrunedFacts(TypedDict, total=False):
    """The share of weights that is kept, in all and of each layer."""

    kept: float
    kept_by_layer: dict[str, float]


def pruned_facts(masks: Masks) -> PrunedFacts:
    """What a result says of its pruning."""
    layers = {name: kept_ratio({name: mask}) for name, mask in masks.items()}
    return {"kept": kept_ratio(masks) if masks else 1.0, "kept_by_layer": layers}


def pruned_warnings(masks: Masks) -> list[str]:
    """A sentence if nothing was pruned, or next to nothing, and one for each layer of which nothing is left."""
    if masks and all(bool(mask.all()) for mask in masks.values()):
        return [f"The masks keep every weight, so that nothing was pruned; {PRUNE_MORE}."]
    if masks and (kept := kept_ratio(masks)) > NEARLY_ALL:
        return [f"The masks keep {100 * kept:.1f} % of the weights, so that next to nothing was pruned; {PRUNE_MORE}."]
    dead = [name for name, mask in masks.items() if not mask.any()]
    return [f"Nothing is left of {name}: it was pruned whole; lower masks.l1 or masks.steps." for name in dead]


def prune(model: nn.Module, masks: Masks) -> None:
    """Set every weight that is not kept to zero."""
    with torch.no_grad():
        for name, mask in masks.items():
            weight = model.get_parameter(name)
            weight.mul_(mask.to(weight.device))


@contextlib.contextmanager
def pruned(model: nn.Module, masks: Masks) -> Iterator[None]:
    """Prune ``model`` and hold the pruned weights at zero while it trains in the block, with any optimiser.

    They are set to zero after each step: even without a gradient, a preconditioner that mixes weights would move them.
    """
    held = {name: mask.to(model.get_parameter(name).device) for name, mask in masks.items()}  # once, not at each step
    prune(model, held)
    handle = register_optimizer_step_post_hook(lambda *_: prune(model, held))
    try:
        yield
    finally:
        handle.remove()
