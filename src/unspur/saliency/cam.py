"""Class-activation maps in batches: one forward pass, and backward only through what lies after the target layer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from unspur.errors import UnspurError, unknown
from unspur.models.base import cam_layer, channels_first, evaluating, hooked

CamKind = Literal["xgradcam", "gradcam", "layercam", "scorecam"]

_TINY = 1e-7  # keeps a channel that is zero everywhere from dividing by zero


def xgradcam(activations: Tensor, gradients: Tensor) -> Tensor:
    """sum_c w_c A_c with w_c = sum(dS/dA_c * A_c) / sum(A_c) over the map's pixels (arXiv:2008.02312, Eq. 8).

    >>> a = torch.tensor([[[[1.0, 3.0]]]])
    >>> xgradcam(a, torch.tensor([[[[1.0, 2.0]]]]))  # w = (1 * 1 + 2 * 3) / (1 + 3) = 1.75
    tensor([[[1.7500, 5.2500]]])
    """
    weights = (gradients * activations).sum((2, 3)) / (activations.sum((2, 3)) + _TINY)
    return _weighted(weights, activations)


def gradcam(activations: Tensor, gradients: Tensor) -> Tensor:
    """sum_c w_c A_c with w_c = the mean of dS/dA_c over the map's pixels (arXiv:1610.02391, Eq. 1 and 2).

    >>> gradcam(torch.tensor([[[[1.0, 3.0]]]]), torch.tensor([[[[1.0, 2.0]]]]))  # w = (1 + 2) / 2 = 1.5
    tensor([[[1.5000, 4.5000]]])
    """
    return _weighted(gradients.mean((2, 3)), activations)


def layercam(activations: Tensor, gradients: Tensor) -> Tensor:
    """sum_c w_c * A_c with a weight for each pixel, w_c = max(dS/dA_c, 0) (LayerCAM, IEEE TIP 2021).

    >>> layercam(torch.tensor([[[[1.0, 3.0]]]]), torch.tensor([[[[-1.0, 2.0]]]]))
    tensor([[[0., 6.]]])
    """
    return (gradients.relu() * activations).sum(1)


FROM_GRADIENTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "xgradcam": xgradcam,
    "gradcam": gradcam,
    "layercam": layercam,
}


def cam(
    model: nn.Module,
    x: Tensor,
    *,
    layer: nn.Module | None = None,
    target: Tensor | None = None,
    kind: CamKind = "xgradcam",
    rectified: bool = False,
) -> Tensor:
    """Where in ``x`` the model sees class ``target``: maps (n, h, w) at the layer's own resolution, never negative.

    ``layer`` defaults to the last one that is a map of the image, ``target`` to the class that the model predicts. S,
    the score, is the logit of that class. Negative values, which speak against the class, are set to 0, as in
    Grad-CAM's Eq. 2. The package grad-cam has the same maps before it stretches them to [0, 1] and to the size of the
    image. The model runs in evaluation mode and is left as it was: modes, statistics, gradients and which parameters
    have them.

    XGradCAM divides by a channel's sum, which is not negative behind a ReLU; but a layer within a block may come before
    its ReLU. ``rectified`` keeps only what a ReLU would let through of the layer's output.

    "scorecam" needs a forward pass for each channel of the layer; the others need a single one.
    """
    if kind not in get_args(CamKind):
        raise unknown("kind of map", kind, get_args(CamKind))
    layer = layer or cam_layer(model, x.shape[1:])
    *tensors, target = _around(model, x, layer, target)
    activations, gradients = (channels_first(tensor, x.shape[1:]) for tensor in tensors)
    if rectified:
        activations = activations.relu()
    if kind == "scorecam":
        return _weighted(_scores(model, x, activations, target).softmax(1), activations).relu_()
    return FROM_GRADIENTS[kind](activations, gradients).relu_()


def _scores(model: nn.Module, x: Tensor, activations: Tensor, target: Tensor) -> Tensor:
    """(n, channels): the logit of ``target`` when only the part of ``x`` that a channel marks is shown.

    This is arXiv:1910.01279. A channel is enlarged with its corners aligned, as in grad-cam, and stretched to [0, 1].
    The paper subtracts the logit of an empty image; that is the same for every channel and drops out of the softmax
    over channels.
    """
    columns = []
    with torch.inference_mode(), evaluating(model):
        for channel in activations.split(1, 1):
            shown = interpolate(channel, x.shape[-2:], mode="bilinear", align_corners=True)
            shown = shown - shown.amin((2, 3), keepdim=True)
            shown = shown / (shown.amax((2, 3), keepdim=True) + _TINY)
            columns.append(model(x * shown).gather(1, target.unsqueeze(1)))
    return torch.cat(columns, 1).clone()


def _around(model: nn.Module, x: Tensor, layer: nn.Module, target: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The output of ``layer`` for ``x``, the derivative of the score with respect to it, and the score's class."""
    kept: list[Tensor] = []

    def cut(module: nn.Module, inputs: object, output: Tensor) -> Tensor:
        # The graph begins here: nothing before this layer is recorded. The network goes on with a copy, since the next
        # layer may work in place, which a leaf of the graph forbids and the map must not see.
        kept.append(output.detach().requires_grad_())
        return kept[-1].clone()

    pools = [module for module in model.modules() if isinstance(module, nn.MaxPool2d)]
    with torch.inference_mode(False), torch.enable_grad(), evaluating(model), _frozen(model):
        with hooked([layer], cut), hooked(pools, _same_layout_back):
            logits: Tensor = model(x.detach())
        if not kept:
            raise UnspurError("The layer for the class-activation maps was not used by the model; give another one.")
        target = logits.argmax(1) if target is None else target
        score = logits.gather(1, target.unsqueeze(1)).sum()
        (gradients,) = torch.autograd.grad(score, kept[-1])
    return kept[-1].detach(), gradients, target


def _same_layout_back(module: nn.Module, inputs: object, output: Tensor) -> None:
    """Give a pooling layer its gradient in the memory layout of its output; with another one it copies everything."""
    last = torch.channels_last
    if output.requires_grad and output.is_contiguous(memory_format=last):
        output.register_hook(lambda gradient: gradient.contiguous(memory_format=last))


@contextlib.contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    """During the block, the model's parameters get no gradients."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def _weighted(weights: Tensor, activations: Tensor) -> Tensor:
    return torch.einsum("nc,nchw->nhw", weights, activations)
