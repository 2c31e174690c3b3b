"""Features and logits of a network that no longer changes, in the fastest way that this processor has.

`benchmarks/features.py` compares the ways; results/benchmarks.md has what it printed. Two are not used: torch.compile,
which is slower than onnxruntime and takes half a minute or more to compile, and bf16, which is fast but off by 6 %.
"""

from __future__ import annotations

import copy
import importlib.metadata
import io
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from unspur.errors import UnspurError
from unspur.models.base import evaluating, head_of, hooked, memory_format, with_features

TOLERANCE = 1e-3  # the largest difference between features, over the largest feature
WORTH_CONVERTING = 500  # the fewest samples for which a conversion of seconds pays
LARGE = 64  # pixels per side from which images take long enough to be worth a conversion


class Way(NamedTuple):
    """How features are computed."""

    name: str
    features: Callable[[Tensor], Tensor]  # of a batch on the model's device


def available() -> str:
    """What the fastest way depends on besides the network: the packages that compute it, and their versions."""
    try:
        faster = f"onnxruntime {importlib.metadata.version('onnxruntime')}"
    except importlib.metadata.PackageNotFoundError:
        faster = "fused"
    return f"torch {torch.__version__}, {faster}, {torch.get_num_threads()} threads"


def fastest(model: nn.Module, some: Tensor, samples: int) -> Way:
    """The fastest way to the features of ``samples`` samples that agrees with the model on ``some`` of them.

    Networks that do not convolve, and networks on another device than a CPU, are used as they are. ``model`` must not
    change as long as the way is used.
    """
    plain = Way("as it is", lambda x: _features(model, x))
    if some.device.type != "cpu" or not any(isinstance(module, nn.Conv2d) for module in model.modules()):
        return plain
    expected = plain.features(some)
    bound = TOLERANCE * float(expected.abs().max())
    for way in _ways(model, some, samples):
        found = way.features(some)
        if found.shape == expected.shape and float((found - expected).abs().max()) <= bound:
            return way
    return plain


def fastest_logits(model: nn.Module, some: Tensor, samples: int) -> Callable[[Tensor], Tensor]:
    """The fastest way to the logits of ``samples`` images, for evaluation alone; ``model`` must not change meanwhile.

    For small images, or few of them, the conversion takes longer than the plain model.
    """

    def plain(x: Tensor) -> Tensor:
        with evaluating(model), torch.no_grad():
            logits: Tensor = model(x)
        return logits

    if samples < WORTH_CONVERTING or some.ndim < 4 or min(some.shape[2:]) < LARGE:
        return plain
    try:
        head = head_of(model)
    except UnspurError:  # the network does not end in a linear layer
        return plain
    way = fastest(model, some, samples)

    def fast(x: Tensor) -> Tensor:
        with torch.no_grad():
            logits: Tensor = head(way.features(x))
        return logits

    expected, found = plain(some), fast(some)
    same = found.shape == expected.shape and float((found - expected).abs().max()) <= TOLERANCE * expected.abs().max()
    return fast if same else plain


def _ways(model: nn.Module, some: Tensor, samples: int) -> Iterator[Way]:
    if samples >= WORTH_CONVERTING and (way := _onnxruntime(model, some)):
        yield way
    net = fused(model, some)
    net.to(memory_format=memory_format(net))  # type: ignore[call-overload]
    yield Way("fused", lambda x: _features(net, x))


def fused(model: nn.Module, some: Tensor) -> nn.Module:
    """A copy of ``model`` for evaluation alone, in which convolutions do the work of the batch norm behind them.

    While ``some`` pass, a batch norm belongs to the convolution whose output it gets. If the network also uses that
    output elsewhere, fusing changes its results, so the copy must be compared with the model.
    """
    net = copy.deepcopy(model).eval()
    convolutions: dict[int, nn.Conv2d] = {}
    outputs: list[object] = []  # kept alive, so that no two have the same id
    pairs: dict[nn.Conv2d, nn.BatchNorm2d] = {}

    def watch(module: nn.Module, inputs: tuple[object, ...], output: object) -> None:
        outputs.append(output)
        if isinstance(module, nn.Conv2d):
            convolutions[id(output)] = module
        elif isinstance(module, nn.BatchNorm2d) and module.running_mean is not None and id(inputs[0]) in convolutions:
            pairs[convolutions[id(inputs[0])]] = module

    with torch.no_grad(), hooked(net.modules(), watch):
        net(some)
    names = {module: name for name, module in net.named_modules()}
    for convolution, norm in pairs.items():
        net.set_submodule(names[convolution], fuse_conv_bn_eval(convolution, norm))
        net.set_submodule(names[norm], nn.Identity())
    return net


def _onnxruntime(model: nn.Module, some: Tensor) -> Way | None:
    """The network in onnxruntime, if that is installed and can run it."""
    try:
        import onnxruntime
    except ImportError:
        return None
    body, file = copy.deepcopy(model).eval(), io.BytesIO()
    head = head_of(body)
    body.set_submodule(next(name for name, module in body.named_modules() if module is head), nn.Identity())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    # Threads that wait in a loop would take the processors from those that decode the next images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    axes = {"x": {0: "samples"}}
    try:
        with warnings.catch_warnings():
            # torch warns that this is the older of its two exporters; here it takes 1 s, and the newer one 13 s.
            warnings.simplefilter("ignore")
            torch.onnx.export(body, (some,), file, dynamo=False, input_names=["x"], dynamic_axes=axes)  # type: ignore[arg-type]
        session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
        session.run(None, {"x": some.numpy()})
    except Exception:  # whatever it cannot convert or run, the network itself can
        return None
    return Way("onnxruntime", lambda x: torch.from_numpy(session.run(None, {"x": x.numpy()})[0]))


def _features(model: nn.Module, x: Tensor) -> Tensor:
    with evaluating(model), torch.no_grad():
        return with_features(model, x)[0]
