"""analyze(folder): every metric and attribution statistic of a stored run, kept beside it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NotRequired, TypedDict

from unspur.core.files import read_json, write_json, write_tensors
from unspur.core.progress import Progress, silent
from unspur.core.shapes import checked
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.errors import require, unknown
from unspur.evaluation.analysis import SAMPLES, EpochRatios, analyse, lacks_shortcut
from unspur.evaluation.figures import AnalysisBlock
from unspur.runs.folder import Run

FILE = "analysis.json"
FORMAT = 5  # of that file; another number wherever a figure is added or begins to mean something else
MAPS_FILE = "artifacts/attributions.safetensors"  # of some test images: their numbers, answers and maps


class Made(TypedDict):
    """How an analysis was made: those of several runs can be compared if it is the same."""

    format: int
    test: str | None  # None: the usual one
    samples: int


class StoredAnalysis(AnalysisBlock):
    """What analysis.json holds."""

    key: str
    made: NotRequired[Made]  # the first analyses did not say
    seconds: float


def analyze(
    folder: Path,
    *,
    data_dir: Path | None = None,
    test: str | None = None,
    foreground: str | None = None,
    around: bool = False,
    samples: int = SAMPLES,
    progress: Progress = silent,
) -> StoredAnalysis:
    """Compute every metric of the finished run in ``folder`` and store them there as analysis.json.

    ``test`` names the test set; without it `usual_test` is taken. The other options are
    those of `evaluation.analysis.analyse`.
    """
    began = time.monotonic()
    stored = Run.open(folder)
    stored.finished()  # or it is an error
    require(samples >= 1, f"--samples must be at least 1 but got {samples}.")
    data = stored.config.data.load(DataFiles(data_dir))
    stored.require_unchanged(data)
    name = test or usual_test(data)
    if name not in data.tests:
        raise unknown("test set", name, data.tests)
    block, maps = analyse(
        stored.load_model(data),
        data,
        name,
        stored.config.data.regions(data.sample_shape),
        loss_ratios=_loss_ratios(stored),
        foreground=foreground,
        around=around,
        samples=samples,
        seed=stored.config.seed,
        progress=progress,
    )
    if maps:
        write_tensors(folder / MAPS_FILE, maps)
    else:  # those of an earlier analysis would be shown as this one's
        (folder / MAPS_FILE).unlink(missing_ok=True)
    found: StoredAnalysis = {
        "key": stored.config.key,
        "made": _made(test, samples),
        **block,
        "seconds": round(time.monotonic() - began, 1),
    }
    write_json(folder / FILE, found)
    return found


def _loss_ratios(stored: Run) -> list[EpochRatios]:
    """The loss ratios of each epoch of a training that noted them; early versions noted an epoch's largest alone."""
    lines = [line for line in stored.kept_log() if "loss_ratio" in line]
    return [EpochRatios(line["loss_ratio"], line.get("loss_ratios") or []) for line in lines]


def usual_test(data: Dataset) -> str:
    """The test set that is analysed unless another is named: the unbiased one, else the first with the shortcut."""
    shown = [name for name in data.tests if not lacks_shortcut(data, name)] or list(data.tests)
    return "unbiased" if "unbiased" in shown else shown[0]


def _made(test: str | None, samples: int) -> Made:
    return {"format": FORMAT, "test": test, "samples": samples}


def read_analysis(path: Path) -> StoredAnalysis:
    """The analysis in ``path``; what is not one is an error that names the file and the field."""
    return checked(read_json(path), StoredAnalysis, str(path))


def stored_analysis(folder: Path) -> StoredAnalysis | None:
    """The analysis of a run if it has been made, and as those of other runs are: by this program, and as is usual."""
    if not (folder / FILE).exists():
        return None
    found = read_json(folder / FILE)
    if not isinstance(found, dict) or found.get("made") != _made(None, SAMPLES):
        return None  # it is made again, whatever else it holds
    return checked(found, StoredAnalysis, str(folder / FILE))
