"""Whatever predicts: a run, an exported folder or an ONNX file, as one function from images in bytes to logits."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from unspur.core.files import parse_json, read_json
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.images.decode import SquareFit
from unspur.errors import UnspurError, require
from unspur.models.inference import fastest_logits
from unspur.models.onnx_file import OnnxFile
from unspur.practice.export.graph import BEFORE
from unspur.practice.export.layout import (
    ABSTENTION,
    LABELS,
    ONNX,
    TORCH,
    WEIGHTS,
    exported_module,
    read_exported,
    read_labels,
)
from unspur.practice.predict.abstention import Calibration, calibration_of_json
from unspur.runs.folder import Run

Logits = Callable[[Tensor], Tensor]  # bytes (n, 3, size, size) to scores (n, classes)
TRIED = 4  # images on which a faster way is compared with the network


@dataclass(frozen=True, eq=False)
class ImageClassifier:
    """A classifier of images, which are read as squares with sides of ``size`` pixels."""

    name: str
    content: str  # tells it from other models: rows of two models do not go into one file
    classes: tuple[str, ...]
    size: int
    fit: SquareFit
    logits: Logits
    before: Logits | None = None  # the model before the repair, which answers with it or makes it abstain
    calibration: Calibration | None = None  # stored beside an exported model
    run: Run | None = None

    def ready_for(self, samples: int) -> ImageClassifier:
        """The same classifier, in the fastest way to score ``samples`` images."""
        some = torch.randint(
            0, 256, (TRIED, 3, self.size, self.size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
        )
        ways = [
            each.faster(some, samples) if isinstance(each, OfModule) else each for each in (self.logits, self.before)
        ]
        assert ways[0] is not None
        return replace(self, logits=ways[0], before=ways[1])


class OfModule:
    """A torch module that takes floats in [0, 1] of 1 or 3 channels."""

    def __init__(self, module: nn.Module, channels: int, way: Logits | None = None) -> None:
        self.module, self._channels = module.eval(), channels
        self._way: Logits = way or module

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        return self._way(self._pixels(images)).cpu()

    def faster(self, some: Tensor, samples: int) -> OfModule:
        """On the GPU if there is one, else in the fastest way that the processor has."""
        if torch.cuda.is_available():
            return OfModule(copy.deepcopy(self.module).cuda(), self._channels)
        return OfModule(self.module, self._channels, fastest_logits(self.module, self._pixels(some), samples))

    def _pixels(self, images: Tensor) -> Tensor:
        device = next((parameter.device for parameter in self.module.parameters()), torch.device("cpu"))
        pixels = images.to(device).float() / 255
        return pixels if self._channels == 3 else pixels.mean(1, keepdim=True)


def open_classifier(path: Path, data_dir: Path | None = None) -> ImageClassifier:
    """The classifier at ``path``: a run's folder, a folder that `unspur export` wrote, or an ONNX file."""
    if path.is_dir():
        if (path / "findings.json").exists():
            raise UnspurError(f"{path} is an audit; name a run, an exported folder or an ONNX file.")
        if (path / LABELS).exists():
            return _exported(path)
        return of_run(Run.open(path), data_dir)
    if not path.exists():
        raise UnspurError(f"{path} does not exist; name a run, an exported folder or an ONNX file.")
    _refuse_program(path)
    require(
        path.suffix.lower() == ".onnx",
        f"{path} is a file, but no ONNX file; name a run, an exported folder or a .onnx.",
    )
    return of_onnx(path)


def _refuse_program(path: Path) -> None:
    """Raise an error for an exported program: torch.export.load (2.13) can run code in it.

    It unpickles what a file says is pickled, and evaluates its shapes as Python.
    """
    require(
        path.suffix.lower() != Path(TORCH).suffix,
        f"{path} is a torch.export program, which torch cannot read without running code that may be in it; export the "
        "run with --format onnx or safetensors to predict.",
    )


def of_run(run: Run, data_dir: Path | None = None) -> ImageClassifier:
    """A finished run's model; its training data are not read."""
    result = run.finished()
    data = run.outputs(DataFiles(data_dir))
    channels, size = square_of(data, str(run.folder))
    baseline = result.get("baseline")
    earlier = run.load_model(data, baseline["stage"]) if baseline and baseline["role"] == "before" else None
    weights = (run.folder / "model.safetensors").read_bytes()
    return ImageClassifier(
        str(run.folder),
        hashlib.sha256(weights).hexdigest()[:32],
        data.classes,
        size,
        getattr(run.config.data, "fit", "stretch"),
        OfModule(run.load_model(data), channels),
        OfModule(earlier, channels) if earlier else None,
        run=run,
    )


def square_of(data: Dataset, name: str) -> tuple[int, int]:
    """Channels and side of square images; anything else cannot be read from files."""
    shape = tuple(data.sample_shape)
    require(
        len(shape) == 3 and shape[0] in (1, 3) and shape[1] == shape[2],
        f"{name} takes inputs of {shape}, but files are read as square images of 1 or 3 channels; evaluate it on a "
        "data set by name (`unspur data list`).",
    )
    return shape[0], shape[1]


def of_onnx(path: Path, calibration: Calibration | None = None, fit: SquareFit | None = None) -> ImageClassifier:
    """The model in an ONNX file; without the metadata that `unspur export` writes its classes are numbers."""
    model = OnnxFile(path)
    stored = model.metadata
    side = model.side or _number(stored.get("size", "")) or 224
    tried = model(torch.zeros(1, 3, side, side, dtype=torch.uint8))
    require(tried.dim() == 2, f"{path} gives {tuple(tried.shape[1:])} scores an image instead of one for each class.")
    classes = model.labels or tuple(str(number) for number in range(tried.shape[1]))
    require(len(classes) == tried.shape[1], f"{path} names {len(classes)} labels but gives {tried.shape[1]} scores.")
    rule = stored.get("abstention")
    own = calibration_of_json(parse_json(rule, str(path)), str(path)) if rule else None
    kept: SquareFit = fit or (
        "crop" if stored.get("fit") == "crop" else "pad" if stored.get("fit") == "pad" else "stretch"
    )
    before = model.output(BEFORE) if BEFORE in model.outputs else None
    return ImageClassifier(str(path), model.content, classes, side, kept, model, before, calibration or own)


def _exported(folder: Path) -> ImageClassifier:
    config = read_exported(folder)
    stored = folder / ABSTENTION
    calibration = calibration_of_json(read_json(stored), str(stored)) if stored.exists() else None
    if (folder / ONNX).exists():
        return of_onnx(folder / ONNX, calibration, config["unspur"]["fit"])
    if not (folder / WEIGHTS).exists() and (folder / TORCH).exists():
        _refuse_program(folder / TORCH)
    require(
        (folder / WEIGHTS).exists(),
        f"{folder} holds neither {ONNX} nor {WEIGHTS}; export the run with --format onnx or safetensors to predict.",
    )
    module, shape = exported_module(folder, config)
    weights = (folder / WEIGHTS).read_bytes()
    return ImageClassifier(
        str(folder),
        hashlib.sha256(weights).hexdigest()[:32],
        tuple(read_labels(folder)),
        shape[1],
        config["unspur"]["fit"],
        OfModule(module, shape[0]),
        calibration=calibration,
    )


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
