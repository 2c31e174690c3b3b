"""What the page says of each data set and each run, gathered from run folders."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from unspur.core.progress import Done, Progress, of_stage, silent
from unspur.data.base import Dataset, Split, aligned_with
from unspur.data.files.fetch import DataFiles
from unspur.data.spec import DataSpec
from unspur.errors import UnspurError
from unspur.report.analysed import Analysed, analysed
from unspur.report.change import Change, changed
from unspur.report.charts import StageCharts, stage_charts
from unspur.report.effect import Effect, effects_of
from unspur.report.embedding import Embedding, embedding
from unspur.report.gallery import Gallery, SampleRow, Tile, explainer, gallery, samples
from unspur.report.grid import DRAWN, Grid, grid
from unspur.report.headline import telling_test
from unspur.report.pictures import drawable
from unspur.report.repair import BEFORE, Repair, repair
from unspur.report.rows import Scored, Setting, labels, plain, scored, settings
from unspur.runs.folder import Run

WIDEST = 12  # classes or values in a table of counts
HERO = 4  # pictures below the headline


@dataclass(frozen=True)
class Counts:
    """How often each class goes with each value of an attribute in training; aligned pairs are marked."""

    attribute: str
    values: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[int, bool], ...]], ...]


@dataclass(frozen=True)
class DataView:
    name: str
    about: str
    note: str
    citation: str
    shape: str
    sizes: tuple[tuple[str, int], ...]
    counts: tuple[Counts, ...]
    drawn: bool
    tile: int  # pixels that an image asks for on the page
    pooled: bool
    samples: tuple[SampleRow, ...]

    @property
    def noun(self) -> str:
        return "images" if self.drawn else "samples"


@dataclass(frozen=True)
class StageRow:
    name: str
    tests: tuple[Scored, ...]


@dataclass(frozen=True)
class RunView:
    label: str
    about: str
    method: str
    dataset: str
    arch: str
    seed: int
    status: str
    reason: str
    data: DataView
    tests: tuple[Scored, ...]
    stages: tuple[StageRow, ...]
    curves: tuple[StageCharts, ...]
    trained: tuple[str, float] | None  # the last epoch's stage and training accuracy
    explained: str
    galleries: tuple[Gallery, ...]
    analysis: Analysed | None  # what `unspur analyze` found
    change: Change | None  # the result beside the stage that it repairs or unlearns
    effects: tuple[Effect, ...]  # what taking the shortcut away does
    repair: Repair  # what it did between its ERM stage and its result
    embedding: Embedding | None  # the features after every stage
    grid: Grid | None
    facts: tuple[tuple[str, str], ...]
    machine: tuple[tuple[str, str], ...]
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Hero:
    """The pictures that say most: wrong predictions of the group that the shortcut misleads most."""

    run: RunView
    test: str
    group: str
    tiles: tuple[Tile, ...]


def gather(folders: Sequence[Path], data_dir: Path | None, progress: Progress = silent) -> list[RunView]:
    """A view of every run; data sets that several runs share are read and drawn once."""
    stored = [Run.open(folder) for folder in folders]
    files, loaded, drawn = DataFiles(data_dir), dict[DataSpec, Dataset](), dict[DataSpec, DataView]()
    views = []
    for run, label in zip(stored, labels([run.config for run in stored]), strict=True):
        spec = run.config.data
        if spec not in loaded:
            loaded[spec] = spec.load(files)
            drawn[spec] = _data_view(spec, loaded[spec])
        views.append(_run_view(run, label, loaded[spec], drawn[spec], of_stage(progress, run.folder.name)))
    return views


def hero(runs: Sequence[RunView]) -> Hero | None:
    """Of all runs' galleries, the conflicting group with the lowest accuracy; None if no such group is ever wrong."""
    groups = [
        (row.right_count / (row.right_count + row.wrong_count), Hero(run, shown.test, row.title, row.wrong[:HERO]))
        for run in runs
        for shown in run.galleries
        for row in shown.rows
        if row.aligned is False and row.wrong
    ]
    return min(groups, key=lambda group: group[0])[1] if groups else None


def _data_view(spec: DataSpec, data: Dataset) -> DataView:
    shape, drawn = data.sample_shape, drawable(data.sample_shape)
    pooled, rows = samples(data)
    size = (
        f"{shape[2]} x {shape[1]} pixels, {'grey' if shape[0] == 1 else 'colour'}"
        if drawn
        else f"{plain(shape)} numbers"
    )
    return DataView(
        name=data.name,
        about=_first_line(spec),
        note=data.note,
        citation=spec.about.citation,
        shape=size,
        sizes=tuple((name, len(split)) for name, split in _splits(data)),
        counts=_counts(data),
        drawn=drawn,
        tile=_tile(shape) if drawn else 0,
        pooled=pooled,
        samples=rows,
    )


def _tile(shape: torch.Size) -> int:
    """How many pixels wide an image is shown: photographs larger than digits, wide images wider."""
    _, height, width = shape
    return round((112 if max(height, width) > 64 else 72) * math.sqrt(width / height))


def _splits(data: Dataset) -> Iterator[tuple[str, Split]]:
    yield "training", data.train
    yield "validation", data.val
    yield from ((f"test “{name}”", test) for name, test in data.tests.items())


def _counts(data: Dataset) -> tuple[Counts, ...]:
    tables = []
    for name, column in data.train.attributes.items():
        classes, values = len(data.classes), len(data.attribute_values[name])
        if max(classes, values) > WIDEST:
            continue
        count = torch.bincount(data.train.y * values + column, minlength=classes * values).reshape(classes, values)
        y, value = torch.arange(classes).repeat_interleave(values), torch.arange(values).repeat(classes)
        train = Split(data.train.x, data.train.y, {name: column})
        aligned = aligned_with(train, Split(torch.zeros(len(y), 1), y, {name: value}))
        marks = torch.zeros_like(count) if aligned is None else aligned.reshape(classes, values)
        # A value that training never shows, such as "grey" in a test set, has no column.
        shown = [v for v in range(values) if count[:, v].any()]
        rows = [(data.classes[c], tuple((int(count[c, v]), bool(marks[c, v])) for v in shown)) for c in range(classes)]
        tables.append(Counts(name, tuple(data.attribute_values[name][v] for v in shown), tuple(rows)))
    return tuple(tables)


def _run_view(run: Run, label: str, data: Dataset, data_view: DataView, progress: Done) -> RunView:
    result: Mapping[str, Any] = run.result() or {
        "status": "unfinished",
        "reason": "This run has not ended; go on with `unspur train` and --resume.",
    }
    lines = run.log()
    with _shaped(run.folder / "metrics.jsonl"):
        charts = stage_charts(lines)
        trained = next(((line["stage"], line["accuracy"]) for line in reversed(lines) if "accuracy" in line), None)
    with _shaped(run.folder / "result.json"):
        tests = _tests(result["tests"], data) if result["status"] == "done" else ()
        stages = tuple(StageRow(name, _tests(stage["tests"], data)) for name, stage in result.get("stages", {}).items())
        known = result.get("facts", {})
        fixed = repair(known, [(stage.name, stage.tests) for stage in stages], tests, data)
        facts = tuple((key, plain(value)) for key, value in known.items() if key not in {*fixed.drawn, *DRAWN})
        searched = grid(known)
    repaired = bool(tests) and BEFORE in run.stages()
    explained, galleries = _galleries(run, data, tests) if data_view.drawn and tests else ("", ())
    progress(0.2)
    analysis = analysed(run.folder, data) if tests else None
    change = changed(run, data, (telling_test(tests) or tests[0]).name) if data_view.drawn and tests else None
    progress(0.4)
    effects = effects_of(run, data) if tests else ()
    progress(0.6)
    points = _embedding(run, data, [stage.name for stage in stages]) if repaired else None
    progress(1.0)
    return RunView(
        label=label,
        about=_first_line(run.config.method),
        method=run.config.method.name,
        dataset=data.name,
        arch=run.config.arch.name,
        seed=run.config.seed,
        status=result["status"],
        reason=result.get("reason", ""),
        data=data_view,
        tests=tests,
        stages=stages,
        curves=charts,
        trained=trained,
        explained=explained,
        galleries=galleries,
        analysis=analysis,
        change=change,
        effects=effects,
        repair=fixed,
        embedding=points,
        grid=searched,
        facts=facts,
        machine=_machine(run, result),
        settings=settings(run.config),
    )


def _tests(blocks: Mapping[str, Any], data: Dataset) -> tuple[Scored, ...]:
    return tuple(scored(name, block, data) for name, block in blocks.items())


def _galleries(run: Run, data: Dataset, tests: Sequence[Scored]) -> tuple[str, tuple[Gallery, ...]]:
    model = run.load_model(data)
    explain = explainer(model, data.sample_shape)
    return explain.sentence, tuple(gallery(test.name, model, data, explain) for test in tests)


def _embedding(run: Run, data: Dataset, stages: Sequence[str]) -> Embedding:
    models = [*((stage, run.load_model(data, stage)) for stage in stages), ("result", run.load_model(data))]
    return embedding(models, data)


def _machine(run: Run, result: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    names = ("seconds", "machine", "threads", "devices", "version", "commit")
    return ("folder", run.folder.resolve().name), *((name, plain(result[name])) for name in names if name in result)


@contextlib.contextmanager
def _shaped(path: Path) -> Iterator[None]:
    """Say which file is at fault when what was read from it is not what a run writes."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnspurError(
            f"{path} is not what a run of this data set writes ({reason}); restore it or run again."
        ) from None


def _first_line(spec: Any) -> str:
    return (inspect.getdoc(type(spec)) or "").partition("\n")[0]
