"""The types of what an analysis holds, and its single-number figures by their displayed names (docs/sweeps.md)."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Plane = list[list[float | None]]  # a row for each place on the first axis; None where it is not finite


class Surroundings(TypedDict):
    """Measures around a solution (`evaluation.landscape.surroundings`)."""

    axis: list[float]
    loss: Plane
    accuracy: Plane
    spurious_use: Plane | None
    spurious_by: Literal["attribution", "selectivity"] | None
    unknown: NotRequired[dict[str, str]]  # until it is part of an analysis, which has one for all


class PruningCurve(TypedDict):
    """The share of accuracy that is left at each share pruned."""

    kappas: list[float]
    retained: list[float]
    mean: float
    worst_group: NotRequired[float | None]  # the mean with the worst group's accuracy in the place of all samples'


class Compression(TypedDict):
    sparsity: float | None
    compressibility: float | None
    pq_index: float | None


class WeightCompression(Compression):
    """The mean over layers, and each layer's."""

    layers: dict[str, Compression]


class CompressionBlock(TypedDict):
    """How far the network can be compressed."""

    prunability: dict[str, PruningCurve | None]  # by unit
    activations: Compression | None
    weights: WeightCompression


class Representation(TypedDict):
    """Of penultimate activations."""

    class_separation: float | None
    csi: float | None
    bsi: dict[str, float | None] | None  # by attribute


class MapFigures(TypedDict):
    """Of one kind of attribution."""

    shares: dict[str, float | None] | None
    background: NotRequired[float | None]
    entropy: float | None


class AttributionBlock(TypedDict):
    samples: int
    integrated_gradients: MapFigures | None
    deeplift: MapFigures | None


class Norms(TypedDict):
    parameters: float | None
    logits: float | None


class TrainingLosses(TypedDict):
    max_loss_ratio: float | None
    early_loss_ratio: float | None
    aligned_loss: float | None
    conflicting_loss: float | None
    loss_ratio: float | None


class AnalysisBlock(CompressionBlock, Representation):
    """Every figure of one model on one test set; fields that early versions did not write are not required."""

    test: str
    samples: int
    attribution: AttributionBlock
    norms: Norms
    training: TrainingLosses
    warnings: NotRequired[list[str]]
    surroundings: NotRequired[Surroundings | None]
    unknown: dict[str, str]  # why a figure is None


ABOUT_SHORTCUT = ("core attribution", "spurious attribution")  # figures that need images with the shortcut

# Where in an analysis each single-number figure is, in the order in which they are shown.
FIGURES: dict[str, tuple[str, ...]] = {
    "prunability": ("prunability", "node", "mean"),
    "worst-group prunability": ("prunability", "node", "worst_group"),
    "column prunability": ("prunability", "column", "mean"),
    "weight prunability": ("prunability", "weight", "mean"),
    "activation compressibility": ("activations", "compressibility"),
    "activation sparsity": ("activations", "sparsity"),
    "activation PQ-index": ("activations", "pq_index"),
    "weight compressibility": ("weights", "compressibility"),
    "weight PQ-index": ("weights", "pq_index"),
    "CSI": ("csi",),
    "BSI": ("bsi",),
    "class separation": ("class_separation",),
    "core attribution": ("attribution", "integrated_gradients", "shares", "core"),
    "spurious attribution": ("attribution", "integrated_gradients", "shares", "spurious"),
    "noise attribution": ("attribution", "integrated_gradients", "shares", "noise"),
    "background attribution": ("attribution", "integrated_gradients", "background"),
    "attribution entropy": ("attribution", "integrated_gradients", "entropy"),
    "max loss ratio": ("training", "max_loss_ratio"),
    "early loss ratio": ("training", "early_loss_ratio"),
    "aligned / conflicting loss": ("training", "loss_ratio"),
    "parameter norm": ("norms", "parameters"),
    "logit norm": ("norms", "logits"),
}


def figures(analysis: AnalysisBlock) -> dict[str, float]:
    """The single-number figures of an analysis, by their displayed names; unknown ones are left out."""
    found = {}
    for name, path in FIGURES.items():
        value: Any = analysis
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):  # the BSI of several attributes
            known = [part for part in value.values() if part is not None]
            value = sum(known) / len(known) if known else None
        if value is not None:
            found[name] = float(value)
    return found
