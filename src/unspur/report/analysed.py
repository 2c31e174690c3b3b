"""What `unspur analyze` found of a run, as the page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from unspur.core.files import read_json, read_tensors
from unspur.data.base import Dataset
from unspur.errors import UnspurError
from unspur.evaluation.analysis import figures
from unspur.report.charts import Chart, share_chart
from unspur.report.gallery import Layer, Tile
from unspur.report.pictures import drawable, heat, picture
from unspur.report.planes import Plane, planes
from unspur.runs.analyze import FILE, MAPS_FILE

MEANINGS = {
    "prunability": "accuracy left after pruning nodes or kernels, mean over shares from 0 to 0.9 (1: nothing is lost)",
    "column prunability": "the same after pruning all weights that read an input",
    "weight prunability": "the same after pruning single weights",
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
    "aligned / conflicting loss": "mean training loss of aligned samples over that of conflicting ones",
    "parameter norm": "length of all parameters as one vector",
    "logit norm": "mean length of the logits",
}
UNITS = {"node": "nodes and kernels", "column": "columns", "weight": "single weights"}
KINDS = {"integrated_gradients": "Integrated Gradients", "deeplift": "DeepLift"}


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    meaning: str


@dataclass(frozen=True)
class Analysed:
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


def analysed(folder: Path, data: Dataset) -> Analysed | None:
    """The analysis stored in a run folder; None if it was never analysed."""
    path = folder / FILE
    if not path.exists():
        return None
    found = read_json(path)
    try:
        return _view(found, folder, data)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError) as error:
        raise UnspurError(f"{path} is not what `unspur analyze` writes ({error!r}); analyse the run again.") from None


def _view(found: Mapping[str, Any], folder: Path, data: Dataset) -> Analysed:
    shown = folder / MAPS_FILE
    maps = read_tensors(shown)[0] if shown.exists() and drawable(data.sample_shape) else {}
    kinds = {kind: name for kind, name in KINDS.items() if kind in maps}
    return Analysed(
        test=found["test"],
        samples=found["samples"],
        figures=tuple(Figure(name, value, MEANINGS[name]) for name, value in figures(found).items()),
        charts=tuple(
            share_chart(f"left after pruning {UNITS[unit]}", list(zip(curve["kappas"], curve["retained"], strict=True)))
            for unit, curve in found["prunability"].items()
            if curve
        ),
        kinds=tuple(kinds.values()),
        maps=_tiles(maps, kinds, found["test"], data) if kinds else (),
        planes=planes(found.get("surroundings")),  # older analyses lack these two
        warnings=tuple(found.get("warnings", ())),
        unknown=tuple(found["unknown"].items()),
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
