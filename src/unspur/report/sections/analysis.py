"""What `unspur analyze` found of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from unspur.core.files import read_tensors
from unspur.data.base import Dataset
from unspur.evaluation.analysis import NO_SHORTCUT, lacks_shortcut
from unspur.evaluation.figures import ABOUT_SHORTCUT, AnalysisBlock, figures
from unspur.report.charts import Chart, share_chart
from unspur.report.context import RunContext
from unspur.report.maps import Layer, Tile
from unspur.report.pictures import heat, picture
from unspur.report.section import Section
from unspur.report.sections.landscape import Plane, planes
from unspur.runs.analyze import FILE, MAPS_FILE, read_analysis

MEANINGS = {
    "prunability": "accuracy left after pruning nodes or kernels, mean over shares from 0 to 0.9 (1: nothing is lost)",
    "worst-group prunability": "the same by the accuracy of the group that is worst at each share",
    "column prunability": "prunability by all weights that read an input",
    "weight prunability": "prunability by single weights",
    "activation compressibility": "how well the largest tenth of penultimate activations stands for all (1: wholly)",
    "activation sparsity": "share of penultimate activations that are zero",
    "activation PQ-index": "unevenness of penultimate activations (0: all alike)",
    "weight compressibility": "how well the largest tenth of a layer's weights stands for all, mean over layers",
    "weight PQ-index": "unevenness of a layer's weights, mean over layers",
    "CSI": "how much a penultimate neuron prefers one class, mean over neurons",
    "BSI": "how much it prefers one value of the shortcut",
    "class separation": "how far apart the classes' penultimate activations point (0: not at all)",
    "core attribution": "share of Integrated Gradients on what carries the class",
    "spurious attribution": "share of it on the shortcut",
    "noise attribution": "share of it on what means nothing",
    "background attribution": "share of it outside the objects, over images that show any",
    "attribution entropy": "how widely it is spread, in nats",
    "max loss ratio": "largest share of a batch's loss that its bias-conflicting samples had in training",
    "early loss ratio": "mean share of a batch's loss that they had in the first five epochs",
    "aligned / conflicting loss": "mean training loss of aligned samples over that of conflicting ones",
    "parameter norm": "length of all parameters as one vector",
    "logit norm": "mean length of the logits",
}
UNITS = {"node": "nodes and kernels", "column": "columns", "weight": "single weights"}
KINDS = {"integrated_gradients": "Integrated Gradients", "deeplift": "DeepLift"}


@dataclass(frozen=True)
class Figure:
    name: str
    value: float | None  # None: not measured
    meaning: str


@dataclass(frozen=True)
class AnalysisView:
    """A run's analysis: its figures, pruning curves, attributions and surroundings, and what could not be found."""

    test: str
    samples: int
    figures: tuple[Figure, ...]
    charts: tuple[Chart, ...]
    kinds: tuple[str, ...]
    maps: tuple[Tile, ...]
    planes: tuple[Plane, ...]  # around the solution
    warnings: tuple[str, ...]
    unknown: tuple[tuple[str, str], ...]


def view(run: RunContext) -> AnalysisView:
    found = read_analysis(run.run.folder / FILE)
    shown, data, test = run.run.folder / MAPS_FILE, run.data.data, found["test"]
    maps = read_tensors(shown)[0] if shown.exists() and run.data.drawn else {}
    kinds = {kind: name for kind, name in KINDS.items() if kind in maps}
    # Analyses of version 0.1 hold shares of attribution on a shortcut that no image of their test set has.
    bare = lacks_shortcut(data, test)
    around = found.get("surroundings")
    if bare and around:
        around["spurious_use"] = None
    return AnalysisView(
        test=test,
        samples=found["samples"],
        figures=_figures(found, bare),
        charts=tuple(
            share_chart(f"left after pruning {name}", list(zip(curve["kappas"], curve["retained"], strict=False)))
            for unit, name in UNITS.items()
            if (curve := found["prunability"].get(unit))
        ),
        kinds=tuple(kinds.values()),
        maps=_tiles(maps, kinds, test, data) if kinds else (),
        planes=planes(around),
        warnings=(*([NO_SHORTCUT] if bare else ()), *found.get("warnings", ())),
        unknown=tuple(what for what in found["unknown"].items() if what[1] != NO_SHORTCUT),
    )


def _figures(found: AnalysisBlock, bare: bool) -> tuple[Figure, ...]:
    known = {name: value for name, value in figures(found).items() if not (bare and name in ABOUT_SHORTCUT)}
    unmeasured = ABOUT_SHORTCUT if bare else ()
    return tuple(
        Figure(name, known.get(name), meaning) for name, meaning in MEANINGS.items() if name in (*known, *unmeasured)
    )


def _tiles(maps: Mapping[str, Tensor], kinds: Mapping[str, str], test: str, data: Dataset) -> tuple[Tile, ...]:
    split, tiles = data.tests[test], []
    for place, index in enumerate(maps["index"].tolist()):
        truth, said = int(split.y[index]), int(maps["predicted"][place])
        tiles.append(
            Tile(
                image=picture(split.x[maps["index"][place : place + 1]][0]),
                layers=tuple(Layer(name, heat(maps[kind][place])) for kind, name in kinds.items()),
                truth=data.classes[truth],
                predicted=data.classes[said],
                right=truth == said,
                index=index,
            )
        )
    return tuple(tiles)


ANALYSIS = Section[RunContext]("analysis", view, lambda run: bool(run.tests) and (run.run.folder / FILE).exists())
