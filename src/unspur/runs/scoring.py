"""Score a stored run: on its own test sets, on those of another data set, or on every image of a folder or table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from unspur.core.files import read_tensors
from unspur.core.progress import Progress, silent
from unspur.data.base import Dataset, Split
from unspur.data.catalog import DATASETS
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.folder import Folder
from unspur.data.spec import DataSpec
from unspur.errors import require
from unspur.evaluation.abstention import selective_scores
from unspur.evaluation.scores import Predictions
from unspur.metrics.selective import require_coverage
from unspur.parts.abstaining import SELECTOR, Selector
from unspur.runs.config import configure_data, with_data_settings
from unspur.runs.every_image import every_image, named_images
from unspur.runs.folder import Run
from unspur.runs.result import Result
from unspur.runs.result_warnings import one_class_warnings

SPLITTING = ("split", "split_csv", "val", "test", "seed")  # options that say which images are tested on


class _Scored(NamedTuple):
    """Test sets for a run, beside its own training and validation data."""

    name: str
    data: Dataset
    warnings: Sequence[str]


def score_run(
    folder: Path,
    dataset: str | None,
    settings: Sequence[str],
    data_dir: Path | None,
    coverage: float | None = None,
    progress: Progress = silent,
) -> Result:
    """A stored run's result, scored again; with a coverage also abstaining.

    ``dataset`` is the name of a data set, whose test sets are scored, or a folder or table, all of whose images are;
    without it the run is scored on its own data. ``settings`` change the data that are scored.
    """
    if coverage is not None:
        require_coverage(coverage)
    stored = Run.open(folder)
    result = stored.finished()
    own, files = stored.config.data, DataFiles(data_dir)
    trained = own.load(files)
    scored = _find(stored, result, trained, dataset, settings, files)
    models = {name: stored.load_model(trained, name) for name in stored.stages()}
    stages = {name: Predictions(model, name, progress) for name, model in models.items()}
    after = Predictions(stored.load_model(trained), "result", progress)
    tests = after.scores(scored.data)
    again: Result = {
        **result,
        "dataset": scored.name,
        "tests": tests,
        "stages": {name: {"tests": stage.scores(scored.data)} for name, stage in stages.items()},
        "warnings": [*([] if scored.data is trained else one_class_warnings(tests, trained.classes)), *scored.warnings],
    }
    if coverage is not None:
        baseline = result.get("baseline")
        before = stages[baseline["stage"]] if baseline and baseline["role"] == "before" else after
        # Whatever is scored, the threshold comes from the validation data of the set that the run was trained on.
        held = replace(scored.data, val=trained.val)
        again["selective"] = selective_scores(before, after, held, coverage, learned_selector(stored))
    return again


def learned_selector(stored: Run) -> Selector | None:
    """When to abstain, if the method of a finished run has learnt that."""
    kind = stored.finished().get("facts", {}).get("abstains")
    if kind is None:
        return None
    weights, _ = read_tensors(stored.folder / "artifacts" / f"{SELECTOR}.safetensors")
    return Selector(kind, weights[SELECTOR])


def _find(
    stored: Run, result: Result, trained: Dataset, dataset: str | None, settings: Sequence[str], files: DataFiles
) -> _Scored:
    """What is to be scored; other data than the run's have their classes by the run's numbers."""
    own = stored.config.data
    if dataset is not None and dataset not in DATASETS:
        return _every_image(named_images(dataset, settings, own, trained), own, trained, files)
    other = with_data_settings(own, settings) if dataset is None else configure_data(dataset, settings)
    if other == own:
        stored.require_unchanged(trained)
        return _Scored(own.name, trained, result.get("warnings", []))
    if isinstance(other, Folder) and (dataset is not None or not _same_images(own, other)):
        given = str(other.table) if other.csv else other.root
        rest = [setting for setting in settings if not setting.startswith(("data.root=", "data.csv="))]
        rest += [f"data.root={other.root}"] if other.csv else []
        return _every_image(named_images(given, rest, own, trained), own, trained, files)
    return _test_sets(other, trained, files)


def _same_images(own: DataSpec, other: Folder) -> bool:
    """Whether both are the same images; then they must be split in the same way, or what was trained on is scored."""
    if not isinstance(own, Folder) or (own.root, own.csv) != (other.root, other.csv):
        return False
    for option in SPLITTING:
        require(
            getattr(own, option) == getattr(other, option),
            f"data.{option} would put images that the run was trained on into its test set; leave it out.",
        )
    return True


def _every_image(spec: Folder, own: DataSpec, trained: Dataset, files: DataFiles) -> _Scored:
    require(
        spec.size == trained.sample_shape[-1],
        f"The run was trained on images of {trained.sample_shape[-1]} pixels, but data.size is {spec.size}; leave that "
        "out.",
    )
    data, warnings = every_image(spec, own, trained, files)
    return _Scored(data.name, data, warnings)


def _test_sets(other: DataSpec, trained: Dataset, files: DataFiles) -> _Scored:
    """The test sets of another data set, if its inputs and classes are such as the run takes."""
    loaded = other.load(files)
    known = set(loaded.classes) <= set(trained.classes)
    shapes = {tuple(test.sample_shape) for test in loaded.tests.values()}
    require(
        shapes == {tuple(trained.sample_shape)} and (known or len(loaded.classes) == len(trained.classes)),
        f"The run was trained on {tuple(trained.sample_shape)} in {len(trained.classes)} classes; {other.name} has "
        f"{tuple(loaded.sample_shape)} in {len(loaded.classes)}.",
    )
    said = [loaded.note] if loaded.note else []
    if known:
        number = torch.tensor([trained.classes.index(name) for name in loaded.classes])
        tests = {name: replace(test, y=number[test.y]) for name, test in loaded.tests.items()}
    else:
        tests = dict[str, Split](loaded.tests)
        said.append(
            f"The classes of {other.name} have other names than the run's ({', '.join(map(str, trained.classes))}), "
            "and were matched by their order."
        )
    data = replace(loaded, train=trained.train, val=trained.val, tests=tests, classes=trained.classes)
    return _Scored(other.name, data, said)
