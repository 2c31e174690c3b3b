"""export(...): a run as a folder that another program can use; it is written as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor, nn

from unspur.core.files import writable, write_json, write_text
from unspur.core.options import to_json
from unspur.core.progress import Progress, silent
from unspur.core.unfinished import publish, unfinished_folder
from unspur.data.base import Split
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError, require, unknown
from unspur.metrics.selective import require_coverage
from unspur.models.classifier import Classifier, Normalize
from unspur.practice.audit.stored import stored as stored_audit
from unspur.practice.export.card import Facts, Shrinking, card
from unspur.practice.export.formats import BATCH, FORMATS, Checked, metadata_of, write_model
from unspur.practice.export.graph import Deployed
from unspur.practice.export.layout import ABSTENTION, CARD, CONFIG, LABELS, PREPROCESSOR, ExportedConfig
from unspur.practice.export.shrink import shrink
from unspur.practice.predict.abstention import Calibration, calibration_of, threshold_of
from unspur.practice.predict.audited_cue import audited_cue
from unspur.practice.predict.calibrate import REMOVED, images_of, judge
from unspur.practice.predict.classifier import ImageClassifier, OfModule, of_run
from unspur.runs.folder import Run
from unspur.version import __version__

CHECKED = 64  # validation images on which the file is compared with the model
MARGIN = 0.01  # accuracy that shrinking may cost


@dataclass(frozen=True)
class Wanted:
    """How a run is exported."""

    format: str = "onnx"  # onnx, torch or safetensors
    shrink: bool = False  # remove dead channels
    margin: float = MARGIN  # validation accuracy that this may cost
    coverage: float | None = None  # put the rule for abstaining into the file, for this share of answers
    audits: tuple[Path, ...] = ()  # for the card; the first that found a shortcut also for the thresholds

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise unknown("format", self.format, FORMATS)
        if self.coverage is not None:
            require_coverage(self.coverage)
        require(0 <= self.margin <= 1, f"--margin is a share of accuracy from 0 to 1, but got {self.margin:g}.")
        require(
            self.format != "safetensors" or not (self.shrink or self.coverage is not None),
            "safetensors holds the weights of the run's architecture and no graph; use --format onnx or torch with "
            "--shrink or --coverage.",
        )


class ExportedJSON(TypedDict):
    """What was written."""

    folder: str
    file: str
    bytes: int
    difference: float
    torch_ms: float
    file_ms: float | None
    ece_before: float | None
    ece_after: float | None
    shrunk: dict[str, list[float]] | None


class _Validation(NamedTuple):
    """What validation data there is: images to check on, and a calibration."""

    split: Split | None
    images: Tensor  # bytes (n, 3, size, size)
    calibration: Calibration | None


def export_run(
    folder: Path, out: Path, wanted: Wanted, *, data_dir: Path | None = None, progress: Progress = silent
) -> ExportedJSON:
    """Export the run in ``folder`` to the new folder ``out``."""
    run = Run.open(folder)
    classifier = of_run(run, data_dir)
    audits = [(str(path), stored_audit(path)) for path in wanted.audits]
    with _new_folder(out) as made:
        progress("validation images", 0)
        held = _validation(classifier, wanted, data_dir, progress)
        module, before = (each and _module(each) for each in (classifier.logits, classifier.before))
        assert module is not None
        shrinking = None
        if wanted.shrink:
            progress("shrink", 0)
            module, shrinking = _shrunk(module, classifier, held, wanted.margin)
        calibration = held.calibration
        threshold = None
        if wanted.coverage is not None:
            require(
                calibration is not None,
                f"{folder} has no validation set to choose a threshold on; leave --coverage out.",
            )
            assert calibration is not None
            threshold = calibration.threshold(wanted.coverage)
        progress("write", 0)
        channels = run.outputs(DataFiles(data_dir)).sample_shape[0]
        weights = [parameter.detach() for parameter in module.parameters()]
        zeros = sum(int((weight == 0).sum()) for weight in weights) / sum(weight.numel() for weight in weights)
        deployed = Deployed(module, channels, calibration.temperatures if calibration else (1.0,), before, threshold)
        rule = calibration.stored if calibration else None
        metadata = metadata_of(classifier.classes, classifier.size, classifier.fit, rule, __version__)
        checked = write_model(made, wanted.format, deployed, metadata, held.images.permute(0, 2, 3, 1).contiguous())
        _write_notes(made, run, classifier, channels, module, calibration)
        size = (made / checked.file).stat().st_size
        names = run.names_of_data()
        note = (names.get("note") if names else None) or ""
        known = (run.config, run.finished(), classifier.classes, classifier.size, classifier.fit, note)
        facts = Facts(*known, checked, size, calibration, wanted.coverage, audits, shrinking, zeros)
        write_text(made / CARD, card(facts))
        progress("write", 1)
    return _described(out, checked, size, calibration, shrinking)


@contextlib.contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """A folder beside ``out`` that becomes ``out`` when the block succeeds, and otherwise disappears."""
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()
    require(not os.path.lexists(out), f"{out} exists already; name a new folder with --out.")
    writable(out.absolute().parent)
    with unfinished_folder(out.absolute()) as made:
        yield made
        publish(made, out, 0o777)


def _validation(classifier: ImageClassifier, wanted: Wanted, data_dir: Path | None, progress: Progress) -> _Validation:
    run = classifier.run
    assert run is not None
    data = run.config.data.load(DataFiles(data_dir))
    run.require_unchanged(data)
    size = classifier.size
    if not len(data.val):
        noise = torch.randint(0, 256, (CHECKED, 3, size, size), generator=torch.Generator().manual_seed(0))
        return _Validation(None, noise.to(torch.uint8), None)
    # Without the rule, the file holds a single model, whose confidence differs from that of two.
    alone = classifier if wanted.coverage is not None else replace(classifier, before=None)
    ready = alone.ready_for(len(data.val))
    cue = next((cue for path in wanted.audits if (cue := audited_cue(path, classifier.classes, data.val))), None)
    judged, fitted = judge(ready, data.val, cue, lambda done: progress("validation images", done))
    chosen = [each for each in judged if each.images != REMOVED]
    if wanted.coverage is not None:
        threshold_of(chosen, wanted.coverage)  # an error if the validation set is too small for it
    # The rule in a file cannot swap cues: its thresholds come from swapped images, too, but its figures leave out the
    # test whether the cue decides.
    plain = [each._replace(cue_decides=None) for each in judged]
    chosen = [each for each in plain if each.images != REMOVED]
    calibration = calibration_of(plain, chosen, fitted, cue.what if cue else None)
    index = torch.linspace(0, len(data.val) - 1, min(CHECKED, len(data.val))).long()
    return _Validation(data.val, images_of(data.val, index).contiguous(), calibration)


def _module(logits: object) -> nn.Module:
    assert isinstance(logits, OfModule)
    return logits.module


def _shrunk(
    module: nn.Module, classifier: ImageClassifier, held: _Validation, margin: float
) -> tuple[nn.Module, Shrinking]:
    """``module`` without dead channels, unless that costs too much accuracy on validation images."""
    if held.split is None:
        raise UnspurError("--shrink compares accuracies on validation data, and the run has none; leave it out.")
    assert isinstance(module, Classifier)
    channels = 1 if held.split.sample_shape[0] == 1 else 3
    some = (held.images[:2].float() / 255)[:, :channels]
    small = shrink(module, some)
    accuracy = tuple(_accuracy(OfModule(each, channels), held.split) for each in (module, small.model))
    require(
        accuracy[1] >= accuracy[0] - margin,
        f"Without its {small.removed:,} dead channels the model is right on {accuracy[1]:.4f} of the validation images "
        f"instead of {accuracy[0]:.4f}, more than --margin {margin:g} below; leave --shrink out.",
    )
    batch = (held.images[:BATCH].float() / 255)[:, :channels]
    times = _seconds(module, small.model, batch)
    return small.model, Shrinking(
        small.removed, (small.weights_before, small.weights_after), (accuracy[0], accuracy[1]), times
    )


def _accuracy(logits: OfModule, val: Split) -> float:
    right = sum(
        int((logits(images_of(val, index)).argmax(1) == val.y[index]).sum())
        for index in torch.arange(len(val)).split(64)
    )
    return right / len(val)


@torch.no_grad()
def _seconds(before: nn.Module, after: nn.Module, batch: Tensor) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(6):
        for own, module in zip(times, (before, after), strict=True):
            began = time.perf_counter()
            module(batch)
            own.append(1000 * (time.perf_counter() - began))
    return round(statistics.median(times[0][1:]), 2), round(statistics.median(times[1][1:]), 2)


def _write_notes(
    made: Path,
    run: Run,
    classifier: ImageClassifier,
    channels: int,
    module: nn.Module,
    calibration: Calibration | None,
) -> None:
    """Write the files that say how to use the model."""
    labels, size = list(classifier.classes), classifier.size
    write_json(made / LABELS, labels)
    config: ExportedConfig = {
        "architectures": [run.config.arch.name],
        "num_labels": len(labels),
        "id2label": {str(number): name for number, name in enumerate(labels)},
        "label2id": {name: number for number, name in enumerate(labels)},
        "unspur": {
            "version": __version__,
            "run": run.folder.resolve().name,
            "method": run.config.method.name,
            "arch": to_json(run.config.arch),
            "sample_shape": [channels, size, size],
            "fit": classifier.fit,
        },
    }
    write_json(made / CONFIG, config)
    first = getattr(module, "normalize", None)
    normal = isinstance(first, Normalize)
    write_json(
        made / PREPROCESSOR,
        {
            "do_resize": True,
            "size": {"height": size, "width": size},
            "resample": 2,  # bilinear, as Pillow numbers it
            "do_center_crop": classifier.fit == "crop",
            "do_pad": classifier.fit == "pad",
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": normal,
            "image_mean": first.mean.flatten().tolist() if isinstance(first, Normalize) else None,
            "image_std": first.std.flatten().tolist() if isinstance(first, Normalize) else None,
        },
    )
    if calibration:
        write_json(made / ABSTENTION, calibration.stored)


def _described(
    out: Path, checked: Checked, size: int, calibration: Calibration | None, shrinking: Shrinking | None
) -> ExportedJSON:
    small: dict[str, Sequence[float]] | None = None
    if shrinking:
        small = {
            "channels": [shrinking.channels],
            "weights": shrinking.weights,
            "accuracy": shrinking.accuracy,
            "ms": shrinking.milliseconds,
        }
    return {
        "folder": str(out),
        "file": checked.file,
        "bytes": size,
        "difference": checked.difference,
        "torch_ms": checked.torch_ms,
        "file_ms": checked.file_ms,
        "ece_before": calibration.stored["ece_before"] if calibration else None,
        "ece_after": calibration.stored["ece_after"] if calibration else None,
        "shrunk": {name: list(values) for name, values in small.items()} if small else None,
    }
