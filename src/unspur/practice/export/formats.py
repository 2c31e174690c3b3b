"""The model as a file for another program, compared with the run's model on real images, and timed beside it."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unspur.core.files import write_tensors
from unspur.errors import UnspurError, require
from unspur.models.onnx_file import OnnxFile
from unspur.practice.export.graph import Deployed
from unspur.practice.export.layout import ONNX, TORCH, WEIGHTS

TOLERANCE = 1e-4  # the largest difference of a logit, divided by the largest logit if that is above 1
FORMATS = ("onnx", "torch", "safetensors")
BATCH, ROUNDS = 16, 5  # of the timing


class Checked(NamedTuple):
    """How far the file is from the model, and how long both take for a batch of images."""

    file: str
    difference: float
    torch_ms: float
    file_ms: float | None  # None: it is the same program


def write_model(folder: Path, format: str, deployed: Deployed, metadata: Mapping[str, str], images: Tensor) -> Checked:
    """Write ``deployed`` into ``folder`` and compare the file with it on ``images``, bytes (n, height, width, 3)."""
    if format == "safetensors":
        write_tensors(folder / WEIGHTS, deployed.model.state_dict())
        return Checked(WEIGHTS, 0.0, _milliseconds([lambda: deployed(images[:BATCH])])[0], None)
    write = _write_onnx if format == "onnx" else _write_torch
    name, run = write(folder, deployed, metadata, images)
    with torch.no_grad():
        wanted, found = deployed(images)[0], run(images)
    require(
        wanted.shape == found.shape, f"The exported {name} gives {tuple(found.shape)} scores instead of {wanted.shape}."
    )
    difference = float((wanted - found).abs().max()) / max(1.0, float(wanted.abs().max()))
    require(
        difference <= TOLERANCE,
        f"The exported {name} differs from the run's model by {difference:.1e}, more than {TOLERANCE:g}; nothing was "
        "written. Try another --format.",
    )
    some = images[:BATCH]
    own, theirs = _milliseconds([lambda: deployed(some), lambda: run(some)])
    return Checked(name, difference, own, theirs)


Run = Callable[[Tensor], Tensor]


def _write_onnx(folder: Path, deployed: Deployed, metadata: Mapping[str, str], images: Tensor) -> tuple[str, Run]:
    try:
        import onnx
        import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: F401 (needed below)
        import onnxscript  # torch's exporter needs it
    except ModuleNotFoundError as error:
        raise UnspurError(
            f"ONNX needs one more package ({error.name}): pip install 'unspur[export]', or use --format safetensors."
        ) from None
    batch = torch.export.Dim("images", min=1, max=1 << 20)
    try:
        with _quiet():
            program = torch.onnx.export(
                deployed,
                (images[:2],),
                dynamo=True,
                dynamic_shapes=({0: batch},),
                input_names=["images"],
                output_names=list(deployed.outputs),
                verbose=False,
            )
    except torch.onnx.OnnxExporterError:  # such as torch 2.6 with an onnxscript that is too new for it
        raise UnspurError(
            f"torch {torch.__version__} cannot write this network as ONNX with onnxscript {onnxscript.__version__}; "
            "install a newer torch, or use --format torch or safetensors."
        ) from None
    assert program is not None
    model = program.model_proto
    onnx.helper.set_model_props(model, dict(metadata))
    onnx.save(model, folder / ONNX)
    return ONNX, OnnxFile(folder / ONNX).scores


def _write_torch(folder: Path, deployed: Deployed, metadata: Mapping[str, str], images: Tensor) -> tuple[str, Run]:
    batch = torch.export.Dim("images", min=1, max=1 << 20)
    with _quiet():
        program = torch.export.export(deployed, (images[:2],), dynamic_shapes=({0: batch},))
        torch.export.save(program, folder / TORCH, extra_files=dict(metadata))
        module = program.module()

    @torch.no_grad()
    def run(given: Tensor) -> Tensor:
        logits: Tensor = module(given)[0]
        return logits

    return TORCH, run


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence exporters, which print messages for their own developers: warnings, log lines and emoji on stdout."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _milliseconds(functions: list[Callable[[], Any]]) -> list[float]:
    """The median time of each function, measured in turns so that a busy machine is equally busy for all."""
    seconds: list[list[float]] = [[] for _ in functions]
    with torch.no_grad():
        for _ in range(ROUNDS + 1):
            for own, function in zip(seconds, functions, strict=True):
                began = time.perf_counter()
                function()
                own.append(time.perf_counter() - began)
    return [round(1000 * statistics.median(times[1:]), 2) for times in seconds]


def metadata_of(labels: tuple[str, ...], size: int, fit: str, abstention: Any, version: str) -> dict[str, str]:
    """What a file says of itself: enough to use it without the rest of the folder."""
    stored = {"labels": json.dumps(list(labels)), "size": str(size), "fit": fit, "input": "RGB bytes (n, h, w, 3)"}
    rule = {"abstention": json.dumps(abstention)} if abstention else {}
    return stored | rule | {"producer": f"unspur {version}"}
