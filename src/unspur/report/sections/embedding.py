"""Penultimate features of test samples in the plane (t-SNE), stage by stage, as in DCWP's appendix Figure 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.data.base import Dataset, Split, groups_of
from unspur.errors import UnspurError
from unspur.evaluation.scores import activations, some
from unspur.report.context import RunContext
from unspur.report.section import Section

SAMPLES = 400  # of a test set, drawn at random
NEAREST = 10  # neighbours that are asked whether they are alike
COLOURS = 12  # classes or values that can be told apart
SIDE, MARGIN = 200, 6  # of a panel's square, in its own coordinates


@dataclass(frozen=True)
class Cloud:
    """All samples of one class or value, as an SVG path of dots."""

    name: str
    colour: int
    path: str


@dataclass(frozen=True)
class Panel:
    """One stage, painted by one label; ``alike`` is the share of nearest neighbours that have the same label."""

    stage: str
    clouds: tuple[Cloud, ...]
    alike: float


@dataclass(frozen=True)
class Painted:
    """Every stage, painted by the class or by an attribute."""

    by: str
    names: tuple[tuple[int, str], ...]
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class EmbeddingView:
    """The features of samples of some test sets after each stage; without rows ``reason`` says why there are none."""

    tests: tuple[str, ...]
    samples: int
    rows: tuple[Painted, ...]
    reason: str = ""


def view(run: RunContext) -> EmbeddingView:
    stages = [stage.name for stage in run.stages]
    return embedding([*((stage, run.model(stage)) for stage in stages), ("result", run.model())], run.data.data)


def embedding(models: Iterable[tuple[str, nn.Module]], data: Dataset) -> EmbeddingView:
    """Where ``models``, by the name of their stage, put test samples, painted by class and attribute."""
    tests, parts = _samples(data)
    try:
        features = {stage: torch.cat([activations(model, p).flatten(1) for p in parts]) for stage, model in models}
        places = {stage: _plane(z) for stage, z in features.items()}
    except UnspurError as error:
        return EmbeddingView(tests, sum(map(len, parts)), (), str(error))
    rows = [
        Painted(
            by,
            tuple((colour, names[colour]) for colour in label.unique().tolist()),
            tuple(_panel(stage, z, places[stage], label, names) for stage, z in features.items()),
        )
        for by, label, names in _labels(parts, data)
    ]
    return EmbeddingView(tests, sum(map(len, parts)), tuple(rows))


def alike(z: Tensor, label: Tensor, nearest: int = NEAREST) -> float:
    """The mean share of the ``nearest`` nearest neighbours of each row of ``z`` that have its label.

    >>> alike(torch.tensor([[0.0], [0.1], [5.0], [5.1]]), torch.tensor([0, 0, 1, 0]), nearest=1)
    0.5
    """
    distance = torch.cdist(z, z).fill_diagonal_(torch.inf)
    near = distance.topk(min(nearest, len(z) - 1), largest=False).indices
    return float((label[near] == label.unsqueeze(1)).double().mean())


def _samples(data: Dataset) -> tuple[tuple[str, ...], list[Split]]:
    """Samples in which class and attribute can be told apart, and the test sets that they are from.

    They are from the test set with most groups; where each shows every class with one value only, from all of them.
    """
    most = max(data.tests, key=lambda name: len(groups_of(data.tests[name]).keys))
    apart = len(groups_of(data.tests[most]).keys) > len(data.tests[most].y.unique())
    names = (most,) if apart or not data.tests[most].attributes else tuple(data.tests)
    return names, [some(data.tests[name], SAMPLES // len(names), seed=0) for name in names]


def _labels(parts: Sequence[Split], data: Dataset) -> list[tuple[str, Tensor, Sequence[str]]]:
    """What the samples can be painted by: the class, and each attribute, where there are few but several of them."""
    labels = [("class", torch.cat([part.y for part in parts]), data.classes)]
    for name in parts[0].attributes:
        labels.append((name, torch.cat([part.attributes[name] for part in parts]), data.attribute_values[name]))
    return [(by, label, names) for by, label, names in labels if len(label.unique()) > 1 and len(names) <= COLOURS]


def _plane(z: Tensor) -> Tensor:
    """``z`` in two dimensions, scaled to a panel."""
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise UnspurError(
            "Drawing features in the plane needs the package scikit-learn; install it with pip install 'unspur[tsne]'."
        ) from None
    if len(z) < 3 or not z.isfinite().all() or bool((z == z[0]).all()):
        raise UnspurError("The features of these samples are all alike or not finite, so there is nothing to lay out.")
    if z.shape[1] == 1:
        z = functional.pad(z, (0, 1))  # it begins with two principal components
    reduce = TSNE(perplexity=min(30, (len(z) - 1) / 3), init="pca", max_iter=500, random_state=0)
    flat = torch.from_numpy(reduce.fit_transform(z.numpy()))
    low, high = flat.min(0).values, flat.max(0).values
    return MARGIN + (flat - low) / (high - low).clamp(min=1e-9) * (SIDE - 2 * MARGIN)


def _panel(stage: str, z: Tensor, places: Tensor, label: Tensor, names: Sequence[str]) -> Panel:
    clouds = []
    for colour in label.unique().tolist():
        dots = (f"M{x:.1f} {y:.1f}h0" for x, y in places[label == colour].tolist())
        clouds.append(Cloud(names[colour], colour, "".join(dots)))
    return Panel(stage, tuple(clouds), alike(z, label))


EMBEDDING = Section("embedding", view, lambda run: run.repaired)
