"""Every metric and attribution statistic of a model on a test set ("Large Learning Rates ...", 3.2, 3.3, 5, 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.progress import Progress, of_stage, silent
from unspur.data.base import Dataset, Split, aligned_with, groups_of
from unspur.errors import UnspurError, require
from unspur.evaluation.figures import (
    AnalysisBlock,
    AttributionBlock,
    CompressionBlock,
    PruningCurve,
    Representation,
    Surroundings,
    TrainingLosses,
)
from unspur.evaluation.landscape import surroundings
from unspur.evaluation.scores import activations, chosen, predict, some
from unspur.metrics.attribution import attribution_entropy, background_share, mean_of_known, mean_shares
from unspur.metrics.compress import (
    KAPPAS,
    Prunability,
    Unit,
    compressibility,
    layer_weights,
    pq_index,
    prunability,
    sparsity,
)
from unspur.metrics.dynamics import early_loss_ratio, logit_norm, max_loss_ratio, mean_losses, parameter_norm
from unspur.metrics.groups import group_accuracy, worst_group_accuracy
from unspur.metrics.represent import average_selectivity, class_separation
from unspur.models.base import head_of
from unspur.saliency.attributions import AttributionKind, attributions
from unspur.saliency.foreground import foreground as foreground_of

T = TypeVar("T")

SAMPLES = 1000  # test inputs whose activations are measured (large-LR, C), and to score pruned columns and weights
ATTRIBUTED = 200  # of these: inputs whose attributions are computed
SHOWN = 12  # of these: inputs whose attributions are kept for the report
SCORED = 10_000  # test inputs to score pruned nodes, and training inputs whose losses are compared
UNITS: tuple[Unit, ...] = ("node", "column", "weight")
NO_SHORTCUT = (
    "No image of this test set has the shortcut, so how much the model attributes to it was not measured; name a test "
    "set that has it with --test."
)
NO_LOSSES = "The training noted no losses of samples."
NO_ATTRIBUTES = "The data set has no attributes that could go with the class."
KINDS: tuple[AttributionKind, ...] = ("integrated_gradients", "deeplift")


class EpochRatios(NamedTuple):
    """The share of the loss that conflicting samples had in an epoch: the largest, and that of each step."""

    largest: float
    steps: Sequence[float | None]


class Analysis(NamedTuple):
    """Every figure of one model on one test set as plain JSON values, and the maps of some of its images."""

    figures: AnalysisBlock
    maps: dict[str, Tensor]


def analyse(
    model: nn.Module,
    data: Dataset,
    test: str,
    regions: Mapping[str, Tensor],
    *,
    loss_ratios: Sequence[EpochRatios] = (),
    foreground: str | None = None,
    around: bool = False,
    samples: int = SAMPLES,
    seed: int = 0,
    progress: Progress = silent,
) -> Analysis:
    """Compute every metric of ``model`` on the test set ``test``.

    ``regions`` says where in an input class and shortcut lie; ``loss_ratios`` are those of the training's epochs.
    ``foreground`` says where the objects in the images are (a .npy file of masks, or deeplabv3), for the share of
    attribution on the background. ``samples`` test inputs give the activations, and the accuracy after columns or
    weights are pruned. ``around`` also measures the surroundings of the solution, which takes longer than all the rest.
    What cannot be computed for this model or data is None, and ``unknown`` says why.
    """
    look = _Look(model, data, data.tests[test], samples, seed, progress)
    if regions and lacks_shortcut(data, test):
        regions, look.no_shares = {}, NO_SHORTCUT
    objects = foreground_of(foreground, data.tests[test], look.index[:ATTRIBUTED]) if foreground else None
    found: AnalysisBlock = {
        "test": test,
        "samples": len(look.sample),
        **look.compression(),
        **look.representation(),
        "attribution": look.attribution(regions, objects),
        "norms": {"parameters": parameter_norm(model), "logits": logit_norm(look.logits)},
        "training": look.training(loss_ratios),
        "warnings": look.warnings(),
        "surroundings": look.around(test, regions, seed) if around else None,
        "unknown": {},
    }
    finite: AnalysisBlock = _finite(found, look.unknown)
    finite["unknown"] = look.unknown
    return Analysis(finite, look.shown)


def lacks_shortcut(data: Dataset, test: str) -> bool:
    """Whether a test set shows its images without the shortcut: attributions to it would be 0 whatever a model uses."""
    return test in data.without_shortcut.values()


def _finite(value: Any, unknown: dict[str, str], name: str = "") -> Any:
    """``value`` with None for every number that is not finite; ``unknown`` gets its name and the reason."""
    if isinstance(value, Mapping):
        return {key: _finite(part, unknown, f"{name}.{key}" if name else key) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part, unknown, name) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        unknown[name] = "The value is not a finite number: the network's outputs are too large."
        return None
    return value


class _Look:
    """One model on one test set."""

    def __init__(
        self, model: nn.Module, data: Dataset, test: Split, samples: int, seed: int, progress: Progress = silent
    ) -> None:
        self.progress = progress
        self.model, self.data, self.labelled = model, data, test.attributes
        self.test, self.train = (some(split, SCORED, seed) for split in (test, data.train))
        self.index = chosen(test, samples, seed)
        self.sample = test.subset(self.index)
        self.shown: dict[str, Tensor] = {}
        self.unknown: dict[str, str] = {}
        self.no_shares = "Class and shortcut have no places of their own in these inputs."
        self.logits = predict(model, self.sample, of_stage(progress, "predictions"))
        self.z = self.known("activations", lambda: activations(model, self.sample))

    def known(self, what: str, compute: Callable[[], T | None], otherwise: str = "") -> T | None:
        """The result of ``compute``; if it is None, the reason is kept: an error, or else ``otherwise``."""
        try:
            found = compute()
        except UnspurError as error:
            found, otherwise = None, str(error)
        if found is None:
            self.unknown[what] = otherwise
        return found

    def warnings(self) -> list[str]:
        """Reasons why figures mean less than they seem to."""
        if len(self.sample.y.unique()) == 1 or len(self.logits.argmax(1).unique()) > 1:
            return []
        return ["The network predicts one class for all inputs: all of it can be pruned, and that means nothing."]

    def compression(self) -> CompressionBlock:
        def curve(unit: Unit) -> PruningCurve:
            tested = self.test if unit == "node" else self.sample  # the tables have nodes alone
            worst: list[float] = []  # of each model that was scored

            def accuracy(model: nn.Module) -> float:
                predicted = predict(model, tested).argmax(1)
                worst.append(worst_group_accuracy(group_accuracy(predicted, tested.y, group)))
                self.progress(f"pruning by {unit}", len(worst) / len(KAPPAS))  # the whole model and all shares except 0
                return float((predicted == tested.y).double().mean())

            group = groups_of(tested).id
            spare = head_of(self.model) if unit == "node" else None
            kappas, retained, mean = prunability(self.model, accuracy, unit=unit, spare=spare)
            curve: PruningCurve = {"kappas": list(kappas), "retained": list(retained), "mean": mean}
            if unit == "node":  # as the paper scores CelebA and Waterbirds (4.1)
                curve["worst_group"] = self.known(
                    "prunability.worst_group",
                    lambda: Prunability.of(kappas, worst[0], worst).mean if tested.attributes else None,
                    NO_ATTRIBUTES,
                )
            return curve

        layers = {name: _compression(weights) for name, weights in layer_weights(self.model).items()}
        mean = {key: sum(layer[key] for layer in layers.values()) / len(layers) for key in next(iter(layers.values()))}
        found = {
            "prunability": {unit: self.known(f"prunability.{unit}", partial(curve, unit)) for unit in UNITS},
            "activations": None if self.z is None else _compression(self.z),
            "weights": {**mean, "layers": layers},
        }
        return cast(CompressionBlock, found)

    def representation(self) -> Representation:
        z, sample, classes = self.z, self.sample, len(self.data.classes)
        if z is None:
            return {"class_separation": None, "csi": None, "bsi": None}
        bsi: dict[str, float | None] = {}
        if not sample.attributes:
            self.unknown["bsi"] = NO_ATTRIBUTES
        for name, column in sample.attributes.items():
            values = self.labelled[name].unique()  # including values that no sample has: these must be reported
            label = torch.searchsorted(values, column)
            found = self.known(f"bsi.{name}", partial(average_selectivity, z, label, len(values)))
            if found is not None:
                bsi[name] = found
        return {
            "class_separation": self.known(
                "class_separation",
                lambda: class_separation(z, sample.y, classes),
                "The activations of all inputs point the same way.",
            ),
            "csi": self.known("csi", lambda: average_selectivity(z, sample.y, classes)),
            "bsi": bsi or None,
        }

    def attribution(self, masks: Mapping[str, Tensor], objects: Tensor | None = None) -> AttributionBlock:
        device = next(self.model.parameters()).device
        x = self.sample.batch(torch.arange(min(ATTRIBUTED, len(self.sample))), device).x
        found: AttributionBlock = {"samples": len(x), "integrated_gradients": None, "deeplift": None}
        if not masks:
            self.unknown["attribution.shares"] = self.no_shares
        for number, kind in enumerate(KINDS):
            self.progress("attributions", number / len(KINDS))
            maps = self.known(f"attribution.{kind}", partial(_maps, kind, self.model, x))
            if maps is None:
                continue
            if maps.ndim == 4:
                self.shown |= {"index": self.index[:SHOWN], "predicted": self.logits[:SHOWN].argmax(1)}
                self.shown[kind] = maps[:SHOWN].sum(1).abs()
            found[kind] = {
                "shares": mean_shares(maps, masks) if masks else None,
                "background": None if objects is None else self._background(kind, maps, objects),
                "entropy": mean_of_known(attribution_entropy(maps)),
            }
        self.progress("attributions", 1.0)
        return found

    def _background(self, kind: AttributionKind, maps: Tensor, objects: Tensor) -> float | None:
        """The mean share of attribution on the background, over the images in which there is any object."""
        shown = objects.flatten(1).any(1)
        return self.known(
            f"attribution.{kind}.background",
            lambda: mean_of_known(background_share(maps[shown], objects[shown])),
            "No image that has any attribution shows an object.",
        )

    def around(self, test: str, masks: Mapping[str, Tensor], seed: int) -> Surroundings:
        bar = of_stage(self.progress, "surroundings")
        found = surroundings(self.model, self.data, test, masks, seed=seed, progress=bar)
        self.unknown |= {f"surroundings.{name}": why for name, why in found.pop("unknown").items()}
        return found

    def training(self, epochs: Sequence[EpochRatios]) -> TrainingLosses:
        """Loss ratios during training, and the ratio of mean losses of aligned and conflicting training samples (B)."""
        aligned = aligned_with(self.data.train, self.train) if self.train.attributes else None
        if aligned is None:
            self.unknown["training"] = NO_ATTRIBUTES
            return dict.fromkeys(TrainingLosses.__annotations__)  # type: ignore[return-value]
        # in float32 the loss of a sample with a margin above 17, which is common once all are fitted, would be 0
        losses = functional.cross_entropy(
            predict(self.model, self.train, of_stage(self.progress, "training losses")).double(),
            self.train.y,
            reduction="none",
        )
        means = mean_losses(losses, ~aligned)
        return {
            "max_loss_ratio": self.known(
                "training.max_loss_ratio", lambda: max_loss_ratio(epoch.largest for epoch in epochs), NO_LOSSES
            ),
            "early_loss_ratio": self.known(
                "training.early_loss_ratio", lambda: early_loss_ratio(epoch.steps for epoch in epochs), NO_LOSSES
            ),
            "aligned_loss": means.aligned,
            "conflicting_loss": means.conflicting,
            "loss_ratio": self.known(
                "training.loss_ratio",
                lambda: means.ratio,
                "The losses of conflicting samples are too small to be told from 0."
                if means.conflicting == 0
                else "There are not both aligned and conflicting samples.",
            ),
        }


def _maps(kind: AttributionKind, model: nn.Module, x: Tensor) -> Tensor:
    maps = attributions(kind, model, x).cpu()
    require(bool(maps.any()), "No input has any attribution: the network's answer does not depend on it.")
    return maps


def _compression(z: Tensor) -> dict[str, float]:
    measures = {"sparsity": sparsity, "compressibility": compressibility, "pq_index": pq_index}
    return {name: float(measure(z).mean()) for name, measure in measures.items()}
