"""What a page is made from: data and models read once, and what each model predicts computed once."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from unspur.core.files import read_tensors
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.spec import DataSpec
from unspur.errors import UnspurError
from unspur.evaluation.scores import TestScores, predict
from unspur.methods.facts import BaselineBlock, Facts
from unspur.report.maps import Explainer, explainer
from unspur.report.pictures import drawable
from unspur.report.scores import Scored, only_class, scored
from unspur.report.settings import labels
from unspur.runs.folder import RESULT, Run
from unspur.runs.result_warnings import one_class_warnings

LARGE = 64  # pixels: images with a longer side are photographs, and are shown larger


@dataclass(frozen=True, eq=False)
class DataContext:
    """A data set, loaded once for all runs on it."""

    spec: DataSpec
    data: Dataset

    @property
    def drawn(self) -> bool:
        """Whether its samples are pictures."""
        return drawable(self.data.sample_shape)

    @property
    def noun(self) -> str:
        return "images" if self.drawn else "samples"

    @property
    def tile(self) -> int:
        """How many pixels wide an image is shown: photographs larger than digits, wide images wider."""
        if not self.drawn:
            return 0
        _, height, width = self.data.sample_shape
        return round((112 if max(height, width) > LARGE else 72) * math.sqrt(width / height))


@dataclass(frozen=True)
class StageScores:
    """An earlier stage of a run."""

    name: str
    tests: tuple[Scored, ...]


class RunContext:
    """A stored run. Its models are built, and predict what the run did not note, when first asked to: once."""

    def __init__(self, run: Run, label: str, data: DataContext, anchor: str = "run") -> None:
        self.run, self.label, self.data, self.anchor = run, label, data, anchor
        self.result, self.log = run.result(), run.log()
        with _shaped(run.folder / "result.json"):
            self.tests = self._scored(self.result.get("tests", {}) if self.result and self.done else {})
            blocks = self.result.get("stages", {}) if self.result else {}
            self.stages = tuple(StageScores(name, self._scored(block["tests"])) for name, block in blocks.items())
        self._models: dict[str | None, nn.Module] = {}
        self._logits: dict[str, Tensor] | None = None
        self._explainers: dict[str | None, Explainer] = {}

    def _scored(self, blocks: Mapping[str, TestScores]) -> tuple[Scored, ...]:
        return tuple(scored(name, block, self.data.data) for name, block in blocks.items())

    @property
    def status(self) -> str:
        return self.result["status"] if self.result else "unfinished"

    @property
    def done(self) -> bool:
        return self.status == "done"

    @property
    def reason(self) -> str:
        """Why it is not done."""
        if self.result is None:
            return "This run has not ended; go on with `unspur train` and --resume."
        return self.result.get("reason", "")

    @property
    def method(self) -> str:
        return self.run.config.method.name

    @property
    def about(self) -> str:
        return first_line(self.run.config.method)

    @property
    def facts(self) -> Facts:
        return self.result.get("facts", Facts()) if self.result else Facts()

    @property
    def baseline(self) -> BaselineBlock | None:
        """The stage that the result is to be compared with; None if the run has none, or no result."""
        return self.result.get("baseline") if self.result and self.done else None

    @property
    def repaired(self) -> bool:
        """Whether the result began as its baseline."""
        return self.baseline is not None and self.baseline["role"] == "before"

    @property
    def one_class(self) -> tuple[str, ...]:
        """A sentence for test sets on which the model predicts one class; of runs of version 0.1, too."""
        tests = self.result.get("tests", {}) if self.result and self.done else {}
        known: dict[str, TestScores] = {
            name: {**block, "only_class": only_class(block)} for name, block in tests.items()
        }
        return tuple(one_class_warnings(known, self.data.data.classes))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of any figure must know, the worst first."""
        noted = self.result.get("warnings", []) if self.result else []
        return tuple(dict.fromkeys([*self.one_class, *noted]))

    def model(self, stage: str | None = None) -> nn.Module:
        """The result, or the model of an earlier stage."""
        if stage not in self._models:
            self._models[stage] = self.run.load_model(self.data.data, stage)
        return self._models[stage]

    def logits(self, test: str, stage: str | None = None) -> Tensor:
        """What the result, or an earlier stage, says of every sample of a test set: as the run noted, else now."""
        if self._logits is None:
            self._logits = self.run.kept_logits(self.data.data)
        name, split = f"{stage or RESULT}/{test}", self.data.data.tests[test]
        if name not in self._logits or len(self._logits[name]) != len(split):
            self._logits[name] = predict(self.model(stage), split)
        return self._logits[name]

    def explainer(self, stage: str | None = None) -> Explainer:
        """How to ask the result, or an earlier stage, where it looks."""
        if stage not in self._explainers:
            self._explainers[stage] = explainer(self.model(stage), self.data.data.sample_shape)
        return self._explainers[stage]

    def artifact(self, name: str) -> Tensor | None:
        """A tensor that the method left beside the weights."""
        path = self.run.folder / "artifacts" / f"{name}.safetensors"
        return read_tensors(path)[0][name] if path.exists() else None


@dataclass(frozen=True, eq=False)
class RunsContext:
    """All runs of a page."""

    runs: tuple[RunContext, ...]

    @property
    def data(self) -> tuple[DataContext, ...]:
        """Their data sets, each once."""
        return tuple(dict.fromkeys(run.data for run in self.runs))

    @property
    def finished(self) -> tuple[RunContext, ...]:
        return tuple(run for run in self.runs if run.done)

    @property
    def by_data(self) -> dict[str, list[RunContext]]:
        """The runs by the name of their data set."""
        found: dict[str, list[RunContext]] = {}
        for run in self.runs:
            found.setdefault(run.data.data.name, []).append(run)
        return found


def open_runs(folders: Sequence[Path], data_dir: Path | None) -> RunsContext:
    """The runs in ``folders``; what several share of their data is read once."""
    stored = [Run.open(folder) for folder in folders]
    files, loaded = DataFiles(data_dir), dict[DataSpec, DataContext]()
    contexts = []
    for number, (run, label) in enumerate(zip(stored, labels([run.config for run in stored]), strict=True), 1):
        spec = run.config.data
        if spec not in loaded:
            loaded[spec] = DataContext(spec, spec.load(files))
        contexts.append(RunContext(run, label, loaded[spec], f"run-{number}"))
    return RunsContext(tuple(contexts))


def first_line(options: Any) -> str:
    """What a method or a data set is, in one sentence: its docstring's first."""
    return (inspect.getdoc(type(options)) or "").partition("\n")[0]


@contextlib.contextmanager
def _shaped(path: Path) -> Iterator[None]:
    """Say which file is at fault when its classes or values are not those of the data."""
    try:
        yield
    except (KeyError, IndexError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnspurError(f"{path} does not fit its data set ({reason}); restore it or run again.") from None
