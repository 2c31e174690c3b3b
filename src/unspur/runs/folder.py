"""A run is a folder: what defines it, what it measured, and its weights (docs/runs.md)."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn

from unspur.core.files import (
    parse_json,
    read_json,
    read_tensors,
    require_file,
    writable,
    write_json,
    write_tensors,
)
from unspur.core.shapes import checked
from unspur.core.unfinished import remove_partial
from unspur.data.base import Dataset, Split
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.folder import Folder
from unspur.errors import UnspurError, require
from unspur.methods.base import Fit
from unspur.models.base import memory_format
from unspur.models.classifier import Classifier
from unspur.models.weights import load_state
from unspur.runs.config import Config, key_of
from unspur.runs.result import ENDED, FORMAT, Result, Status, read_result
from unspur.train.session import CHECKPOINTS, LOG
from unspur.version import __version__, commit

RESULT = "result"  # the name of the last model, beside those of its stages
LOGITS = "artifacts/logits.safetensors"  # what each model said of each test sample, so that no page asks it again
MOST_LOGITS = 2**24  # more numbers are not kept: 64 MB


class DataNames(TypedDict):
    """data.json: what the numbers in a run mean."""

    classes: list[str]
    attribute_values: NotRequired[dict[str, list[str]]]
    note: NotRequired[str | None]
    sample_shape: NotRequired[list[int]]
    content: NotRequired[str]  # a hash of the user's own images


class Run:
    """One run folder, made by ``Run.create`` or found by ``Run.open``."""

    def __init__(self, folder: Path, config: Config, key: str | None = None) -> None:
        """``key`` is that of the stored configuration, where an older version wrote it."""
        self.folder, self.config, self.key = folder, config, key or config.key

    @classmethod
    def create(cls, out: Path, config: Config) -> Run:
        """The folder of ``config`` below ``out``; nothing is written yet."""
        run = cls(out / f"{config.method.name}-{config.data.name}-{config.key}", config)
        if (run.folder / "config.json").exists() and cls.open(run.folder).config != config:
            raise UnspurError(f"{run.folder} holds a run of another configuration; move or delete it.")
        return run

    @classmethod
    def open(cls, folder: Path) -> Run:
        """The run stored in ``folder``, after checking that its configuration is the one its name promises."""
        if not (folder / "config.json").exists():
            raise UnspurError(f"{folder} is not a run folder: it has no config.json.")
        stored = read_json(folder / "config.json")
        try:
            config = Config.from_json(stored)
        except UnspurError as error:
            raise UnspurError(f"{folder / 'config.json'}: {error}") from None
        key = key_of(stored)
        if not folder.resolve().name.endswith(key):
            raise UnspurError(
                f"{folder / 'config.json'} describes another run (its key is {key}); restore or delete the folder."
            )
        return cls(folder, config, key)

    @contextlib.contextmanager
    def working(self, say: Callable[[str], None]) -> Iterator[None]:
        """Hold the folder for this process; that another process must be waited for is said.

        The operating system drops the lock when its owner dies, however it dies.
        """
        writable(self.folder)
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            say(f"Another process works on {self.folder}; waiting for it.")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @property
    def started(self) -> bool:
        return (self.folder / "config.json").exists()

    def result(self) -> Result | None:
        """What result.json says, or None while the run has not ended; checkpoints of a run that has are deleted."""
        path = self.folder / "result.json"
        if not path.exists():
            return None
        result = read_result(path)
        require(
            result["key"] == self.key,
            f"{path} is not the result of this run; delete it and run again with --resume.",
        )
        if result["status"] in ENDED:  # a process that was killed just then may have left them
            shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        return result

    def finished(self) -> Result:
        """The result of a run that is done; of any other it is an error to ask."""
        result = self.result()
        if result and result["status"] == "done":
            return result
        if result and result["status"] == "diverged":
            raise UnspurError(f"{self.folder} holds a run that diverged, so no model; train again at a lower rate.")
        raise UnspurError(f"{self.folder} holds no finished run; finish it with `unspur train ... --resume`.")

    def log(self) -> list[dict[str, Any]]:
        """The lines that the training has noted, an epoch or a number of steps each."""
        path, lines = self.folder / LOG, []
        if not path.exists():
            return []
        require_file(path)
        whole = path.read_text(encoding="utf-8", errors="replace")
        if not (self.folder / "result.json").exists():  # its last line may be half-written
            whole = whole[: whole.rfind("\n") + 1]
        for number, text in enumerate(whole.splitlines(), 1):
            line = parse_json(text, f"{path}, line {number},")
            require(
                isinstance(line, dict) and "stage" in line,
                f"{path} cannot be read: line {number} names no stage; restore or delete the file.",
            )
            lines.append(line)
        return lines

    def kept_log(self) -> list[dict[str, Any]]:
        """The lines of the training that made the model, where others were given up before it; else all."""
        result = self.result()
        kept = result.get("trained") if result else None
        return [line for line in self.log() if kept in (None, line["stage"])]

    def training_accuracy(self) -> float | None:
        """What the last line noted; None where that is of steps, and any accuracy of an earlier stage."""
        lines = self.log()
        return lines[-1].get("accuracy") if lines else None

    def begin(self) -> None:
        """Write the configuration, and clear what a killed process left half-written."""
        remove_partial(self.folder)
        (self.folder / "result.json").unlink(missing_ok=True)  # a failed attempt's
        write_json(self.folder / "config.json", self.config.to_json())

    def keep(self, fit: Fit, data: Dataset) -> None:
        """Store what the outputs mean, weights, stages and artifacts; the run has not ended before ``end``."""
        write_json(self.folder / "data.json", _names(data))
        write_tensors(self.folder / "model.safetensors", fit.model.state_dict())
        for name, stage in fit.stages.items():
            write_tensors(self.folder / "stages" / f"{name}.safetensors", stage.state_dict())
        for name, tensor in fit.artifacts.items():
            write_tensors(self.folder / "artifacts" / f"{name}.safetensors", {name: tensor})

    def keep_logits(self, logits: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Store the logits of test sets, by model and test set."""
        named = {f"{model}/{test}": values for model, tests in logits.items() for test, values in tests.items()}
        if 0 < sum(values.numel() for values in named.values()) <= MOST_LOGITS:
            write_tensors(self.folder / LOGITS, named)

    def kept_logits(self, data: Dataset) -> dict[str, Tensor]:
        """What ``keep_logits`` stored, under model/test; nothing if the run kept none, or its images have changed."""
        if not (self.folder / LOGITS).exists() or not self._unchanged(data):
            return {}
        return read_tensors(self.folder / LOGITS)[0]

    def end(self, status: Status, seconds: float, devices: int, **rest: Any) -> Result:
        """Write result.json, last and atomically, and delete the checkpoints that nothing needs any more."""
        result: Result = {
            "format": FORMAT,
            "key": self.key,
            "method": self.config.method.name,
            "dataset": self.config.data.name,
            "arch": self.config.arch.name,
            "seed": self.config.seed,
            "status": status,
            "seconds": round(seconds, 1),
            "threads": torch.get_num_threads(),
            "devices": devices,
            "version": __version__,
            "commit": commit(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}",
            **rest,  # type: ignore[typeddict-item]
        }
        write_json(self.folder / "result.json", result)
        if status in ENDED:
            shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        return result

    def load_model(self, data: Dataset, stage: str | None = None) -> nn.Module:
        """The trained model, or an earlier stage of it by name, in evaluation mode."""
        path = self.folder / (f"stages/{stage}.safetensors" if stage else "model.safetensors")
        weights, _ = read_tensors(path)
        self._check_classes(data)
        if stage is None:
            return _ready(self.config.arch.restore(data, weights, str(path), self.config.method.grown))
        if stage not in self.config.method.own_stages:
            return _ready(self.config.arch.restore(data, weights, str(path)))
        model = self.config.method.stage_model(stage, self.load_model(data), data.train, self.config.seed)
        assert isinstance(model, Classifier)  # like all that architectures build
        load_state(model, weights, str(path))
        return _ready(model)

    def outputs(self, files: DataFiles) -> Dataset:
        """The classes and the shape of samples, and no samples: all that ``load_model`` needs to know of the data.

        A run of an earlier version did not note the shape, so that its data are loaded where they are not a folder.
        """
        names, spec = self.names_of_data(), self.config.data
        shape = names.get("sample_shape") if names else None
        if shape is None and isinstance(spec, Folder):
            shape = [3, spec.size, spec.size]
        if shape is None or names is None:
            loaded = spec.load(files)
            shape, classes = list(loaded.sample_shape), loaded.classes
        else:
            classes = tuple(names["classes"])
        require(
            bool(shape) and min(shape) > 0,
            f"{self.folder / 'data.json'} has samples of {shape}, which are none; restore it.",
        )
        blank = Split(torch.zeros(0, *shape, dtype=torch.uint8), torch.zeros(0, dtype=torch.long))
        return Dataset(spec.name, blank, blank, {}, classes)

    def _check_classes(self, data: Dataset) -> None:
        """Refuse data whose classes are not those that the outputs were trained for: an index would mean another."""
        stored = self.names_of_data()
        if stored and (trained := stored.get("classes")) != list(data.classes):
            raise UnspurError(
                f"{self.folder} was trained for the classes {trained}, but the data has {list(data.classes)}."
            )

    def require_unchanged(self, data: Dataset) -> None:
        """Refuse the user's own images if they have changed since: what was trained on may now be in the test set."""
        require(
            self._unchanged(data),
            f"The images of {self.folder} have changed since it was trained; put them back, train again, or score it "
            "on other images with `unspur evaluate RUN FOLDER`.",
        )

    def _unchanged(self, data: Dataset) -> bool:
        names = self.names_of_data()
        content = names.get("content") if names else None
        return not content or content == data.content

    def names_of_data(self) -> DataNames | None:
        """What data.json says; None in old runs."""
        path = self.folder / "data.json"
        return checked(read_json(path), DataNames, str(path)) if path.exists() else None

    def stages(self) -> Mapping[str, Path]:
        """Stored stages by name."""
        return {path.stem: path for path in sorted((self.folder / "stages").glob("*.safetensors"))}


def _ready(model: nn.Module) -> nn.Module:
    """``model`` in evaluation mode and in the layout in which it runs fastest."""
    return model.to(memory_format=memory_format(model)).eval()  # type: ignore[call-overload,no-any-return]


def _names(data: Dataset) -> DataNames:
    names: DataNames = {
        "classes": list(data.classes),
        "attribute_values": {name: list(values) for name, values in data.attribute_values.items()},
        "note": data.note,
        "sample_shape": list(data.sample_shape),
    }
    return {**names, "content": data.content} if data.content else names
