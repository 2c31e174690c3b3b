"""Score a stored run on its own test sets or on those of another data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError
from unspur.evaluation.abstention import selective_scores
from unspur.evaluation.scores import evaluate
from unspur.runs.config import configure_data
from unspur.runs.folder import Run
from unspur.runs.result import Result


def score_run(
    folder: Path, dataset: str | None, settings: Sequence[str], data_dir: Path | None, coverage: float | None = None
) -> Result:
    """A stored run's result, scored again on its own data or on another set; with a coverage also abstaining."""
    stored = Run.open(folder)
    result = stored.finished()
    own, files = stored.config.data, DataFiles(data_dir)
    trained = own.load(files)
    other = configure_data(dataset, settings) if dataset else own
    loaded = trained if other == own else other.load(files)
    if loaded.sample_shape != trained.sample_shape or len(loaded.classes) != len(trained.classes):
        raise UnspurError(
            f"The run was trained on {tuple(trained.sample_shape)} in {len(trained.classes)} classes; {other.name} has "
            f"{tuple(loaded.sample_shape)} in {len(loaded.classes)}."
        )
    data = replace(loaded, train=trained.train)
    stages = {name: stored.load_model(trained, name) for name in stored.stages()}
    model = stored.load_model(trained)
    scored: Result = {
        **result,
        "dataset": other.name,
        "tests": evaluate(model, data),
        "stages": {name: {"tests": evaluate(stage, data)} for name, stage in stages.items()},
    }
    if coverage is not None:
        baseline = result.get("baseline")
        before = stages[baseline["stage"]] if baseline and baseline["role"] == "before" else model
        # Whatever is scored, the threshold comes from the validation data of the set that the run was trained on.
        scored["selective"] = selective_scores(before, model, replace(data, val=trained.val), coverage)
    return scored
