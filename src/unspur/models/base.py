"""What can be found out about any network: its features and head, the layer for maps, the best memory layout."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unspur.errors import UnspurError, require

_HEADS = ("head", "heads", "fc", "classifier", "linear")  # what networks call the part that ends in the classes

# Layers that add nothing to the map of the layer before them, and may lose some of its spatial detail.
_PASSIVE = (
    nn.MaxPool2d,
    nn.AvgPool2d,
    nn.AdaptiveMaxPool2d,
    nn.AdaptiveAvgPool2d,
    nn.Dropout,
    nn.Dropout2d,
    nn.Identity,
    nn.ConstantPad2d,
    nn.ZeroPad2d,
)
_NO_MAP = (1, 1)
_STRIDED = (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d)


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put every layer in evaluation mode for the block, then each back in the mode that it had."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextlib.contextmanager
def hooked(modules: Iterable[nn.Module], hook: Callable[..., Any]) -> Iterator[None]:
    """Call ``hook`` after each of ``modules`` during the block, and never after it."""
    handles = [module.register_forward_hook(hook) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def batch_norms(model: nn.Module) -> list[nn.modules.batchnorm._BatchNorm]:
    """The layers that normalise by a batch's means and variances, and in evaluation mode by stored ones."""
    return [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]


def memory_format(model: nn.Module) -> torch.memory_format:
    """The layout in which ``model`` runs faster on a CPU: channels-last for networks that convolve.

    Measured by benchmarks/channels_last.py, one thread, time of a step over that in the plain layout: small_cnn
    0.62 to 0.78, resnet32 0.67, mobilenet_v2 0.72, cnn3 0.91, resnet18 0.92 to 1.00, vgg11 0.96 to 1.06. So it helps
    or makes no difference. A model may name its own as ``memory_format``.
    """
    if own := getattr(model, "memory_format", None):
        format: torch.memory_format = own
        return format
    convolves = any(isinstance(module, nn.Conv2d) for module in model.modules())
    return torch.channels_last if convolves else torch.contiguous_format


def head_of(model: nn.Module) -> nn.Linear:
    """The linear layer that turns features into one number a class.

    It is the last linear layer of the outermost part that is called head, heads, fc, classifier or linear. Without such
    a part it is the last linear layer of the model.
    """
    named = [(name, module) for name, module in model.named_modules() if name.split(".")[-1] in _HEADS]
    depth = min((name.count(".") for name, _ in named), default=0)
    outermost = [module for name, module in named if name.count(".") == depth]
    for part in [*reversed(outermost), model]:
        linear = [module for module in part.modules() if isinstance(module, nn.Linear)]
        if linear:
            return linear[-1]
    raise UnspurError(f"{_name(model)} does not end in a linear layer, so it has no features and head to tell apart.")


def last_layer(net: nn.Module) -> tuple[str, nn.Linear | nn.Conv2d]:
    """The name and layer of the class scores: the layer registered last, here and throughout torchvision.

    It is the same as ``head_of`` except for SqueezeNet, whose last layer is a convolution.
    """
    layers = [(name, module) for name, module in net.named_modules() if isinstance(module, nn.Linear | nn.Conv2d)]
    return layers[-1]


def with_features(model: nn.Module, x: Tensor, head: nn.Module | None = None) -> tuple[Tensor, Tensor]:
    """What goes into the head, and what comes out of the model, from one pass that gradients can flow through.

    ``head`` names the layer if it is not the one that ``head_of`` finds.
    """
    caught: list[Tensor] = []
    watched = head_of(model) if head is None else head
    handle = watched.register_forward_pre_hook(lambda module, inputs: caught.append(inputs[0]))
    try:
        logits: Tensor = model(x)
    finally:
        handle.remove()
    if not caught:
        raise UnspurError(f"{_name(model)} does not call the linear layer that looks like its head.")
    return caught[-1], logits


def penultimate(model: nn.Module, x: Tensor) -> Tensor:
    """The features of ``x``: what goes into the head, after its activation and any dropout."""
    require(
        not set(head_of(model).parameters()).issuperset(model.parameters()),
        "The network has no layer before the one that gives its logits, so that it has no penultimate activations.",
    )
    return with_features(model, x)[0]


def channels_first(maps: Tensor, sample_shape: torch.Size) -> Tensor:
    """A spatial layer's output as (n, channels, height, width), also when the network keeps channels last.

    The layout is the one whose map has the more similar shape to the image: 7x7x768 cannot be 7 channels of 7x768
    pixels of a square image.

    >>> channels_first(torch.zeros(2, 7, 7, 768), torch.Size([3, 224, 224])).shape
    torch.Size([2, 768, 7, 7])
    """
    _, height, width = sample_shape

    def distance(high: int, wide: int) -> float:
        return abs(math.log(high * width / (wide * height)))

    _, a, b, c = maps.shape
    return maps if distance(b, c) <= distance(a, b) else maps.permute(0, 3, 1, 2)


class MapLayer(NamedTuple):
    """A layer whose output is a map of the image, its name, and how many cells the map has."""

    module: nn.Module
    name: str
    cells: tuple[int, int]  # rows, columns
    covered: tuple[int, int]  # pixels of the image's middle that the cells lie over, as far apart as strides say


def map_layer(model: nn.Module, sample_shape: torch.Size, least: int = 1) -> MapLayer:
    """The last layer whose output is a map of the image, has ``least`` rows and columns, and carries all information.

    Every layer is watched while a blank image passes. Pooling at the end is left out, because its input shows the same
    in finer detail: `small_cnn` gives 8x8 (its last convolution after batch norm and ReLU) and not the pooled 4x4, as
    in MaskTune's code; a ResNet gives its last block. A layer that a shortcut bypasses does not count, nor does a map
    of one pixel. If no map has ``least`` rows and columns, it is the layer with the finest map. A network that turns
    its image into a sequence (a vision transformer) or never convolves has no map.
    """
    finest: MapLayer | None = None
    if len(sample_shape) == 3:
        x = torch.zeros(1, *sample_shape, device=next(model.parameters()).device, requires_grad=True)
        names = {module: name for name, module in model.named_modules()}
        with evaluating(model), torch.enable_grad():
            for module, (run, cells, stride) in _map_layers(model, x):
                finer = finest is None or min(cells) > min(finest.cells)
                if finer and _all_passes(model, module, run, x):
                    finest = MapLayer(module, names[module], cells, _covered(cells, stride, x.shape[2:]))
                    if min(cells) >= least:
                        break
    if finest is not None:
        return finest
    size = "x".join(str(length) for length in sample_shape)
    raise UnspurError(
        f"{_name(model)} on inputs of {size} has no layer that is a map of the image, so it has no "
        f"class-activation maps; use input gradients instead (MaskTune: --set saliency=gradient)."
    )


def cam_layer(model: nn.Module, sample_shape: torch.Size, least: int = 1) -> nn.Module:
    """The layer for class-activation maps, as ``map_layer`` finds it."""
    return map_layer(model, sample_shape, least).module


def _covered(cells: tuple[int, int], stride: tuple[int, int] | None, size: torch.Size) -> tuple[int, int]:
    """The pixels that the cells of a map cover; the whole image if strides are unknown or padding keeps the edges."""
    rows, columns = size
    if stride is None:
        return rows, columns
    return min(rows, cells[0] * stride[0]), min(columns, cells[1] * stride[1])


class _Ran(NamedTuple):
    times: int
    cells: tuple[int, int]  # of its last output; (1, 1) is no map
    stride: tuple[int, int] | None = None  # pixels from one cell to the next, where it is known


def _map_layers(model: nn.Module, x: Tensor) -> list[tuple[nn.Module, _Ran]]:
    """The layers whose last output for ``x`` is a map, the latest first."""
    seen: dict[nn.Module, _Ran] = {}
    outputs: list[Tensor] = []  # kept alive, so that no two have the same id
    passive: set[int] = set()
    convolves = False
    strides = {tuple(x.shape[2:]): (1, 1)}  # of maps by their size

    def watch(module: nn.Module, inputs: tuple[Any, ...], output: object) -> None:
        nonlocal convolves
        times = seen.pop(module, _Ran(0, _NO_MAP)).times + 1
        cells = _NO_MAP
        if isinstance(output, Tensor):
            outputs.append(output)
            if isinstance(module, _STRIDED) and (before := strides.get(tuple(inputs[0].shape[2:]))):
                steps: Any = module.stride  # a number, or one or two of them
                down, along = (steps, steps) if isinstance(steps, int) else (steps[0], steps[-1])
                strides[tuple(output.shape[2:])] = (before[0] * down, before[1] * along)
            # Before the first convolution there is only the image.
            convolves = convolves or isinstance(module, nn.Conv2d)
            if isinstance(module, _PASSIVE):
                passive.add(id(output))
            elif output.ndim == 3:  # a sequence: what was a map before is not one any more
                seen.update({earlier: ran._replace(cells=_NO_MAP) for earlier, ran in seen.items()})
            elif output.ndim == 4 and convolves and id(output) not in passive:
                rows, columns = channels_first(output, x.shape[1:]).shape[2:]
                cells = (rows, columns)
        seen[module] = _Ran(times, cells, strides.get(cells))

    with torch.no_grad(), hooked(model.modules(), watch):
        model(x)
    return [(module, ran) for module, ran in reversed(seen.items()) if math.prod(ran.cells) > 1]


def _all_passes(model: nn.Module, module: nn.Module, run: int, x: Tensor) -> bool:
    """Whether all that the logits know about ``x`` passed through the given run of ``module``."""
    runs = 0

    def cut(module: nn.Module, inputs: object, output: Tensor) -> Tensor | None:
        nonlocal runs
        runs += 1
        return output.detach() if runs == run else None

    with hooked([module], cut):
        logits: Tensor = model(x)
    return not logits.requires_grad or torch.autograd.grad(logits.sum(), x, allow_unused=True)[0] is None


def _name(model: nn.Module) -> str:
    return str(getattr(model, "arch", type(model).__name__))
