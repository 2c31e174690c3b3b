"""From a map of what a model looks at to a mask that hides it (MaskTune, Eq. 2 and section 3).

In one sentence of the paper the map A has the image's own size; in the next, the thresholded map is up-sampled. Here
the map is up-sampled smoothly and then thresholded. Thresholding first hides whole cells of a coarse map, whose borders
are not those of what the model looks at. On `biased_mnist` that left 28 to 40 % of the square's pixels visible, against
1 % (three seeds, results/masktune-readings.json), and with them the shortcut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unspur.core.options import require_finite
from unspur.data.masks import BitMask, BothMasks, GrownMask, MapMask, Mask, SoftMask, grown, upsampled
from unspur.errors import require

PART = 256  # maps that are up-sampled at a time: few enough for a processor's cache
ROUNDING = 1e-6  # up-sampling a constant map may exceed its value by this much (relatively)


@dataclass(frozen=True)
class MeanStd:
    """Hide what exceeds the mean of its own map by some standard deviations (the paper's choice: two)."""

    name: ClassVar[str] = "mean_std"
    num_std: float = 2.0  # the paper tried 0, 1, 2 and 3
    over: Literal["all", "positive"] = "all"  # all values of the map (the paper), or the positive ones (its code)

    def __post_init__(self) -> None:
        require_finite(self, "threshold.")
        require(self.num_std >= 0, f"threshold.num_std must be at least 0 but got {self.num_std}.")

    def level(self, maps: Tensor, overall: float) -> Tensor:
        """mean + num_std * std (of the population) of each map.

        If only positive values count, both mean and deviation are taken over those. Of m values none can exceed the
        mean by more than sqrt(m - 1) deviations: a map with five positive values or fewer hides nothing at two
        deviations.
        """
        flat = maps.flatten(1)
        counted = flat > 0 if self.over == "positive" else torch.ones(1, flat.shape[1], dtype=torch.bool)
        n = counted.sum(1).clamp(min=1)
        mean = flat.sum(1) / n  # maps are never negative, so values that do not count are 0 and add nothing
        std: Tensor = torch.linalg.vector_norm((flat - mean.unsqueeze(1)).mul_(counted), dim=1) / n.sqrt()
        return mean + self.num_std * std


@dataclass(frozen=True)
class DatasetMean:
    """Hide what exceeds the mean value of all maps of the training set, each scaled to the same peak."""

    name: ClassVar[str] = "dataset_mean"

    def level(self, maps: Tensor, overall: float) -> Tensor:
        """``overall``, the mean of all maps, for every map; the other thresholds do not need it."""
        return torch.full((len(maps),), overall)


@dataclass(frozen=True)
class TopK:
    """Hide the most activated pixels of each image, the same number for every image (but for ties: fewer)."""

    name: ClassVar[str] = "top_k"
    share: float = 0.05  # of the pixels, at least one

    def __post_init__(self) -> None:
        require(0 < self.share < 1, f"threshold.share must lie between 0 and 1 but got {self.share}.")

    def level(self, maps: Tensor, overall: float) -> Tensor:
        """The largest value that is not among the top k."""
        flat = maps.flatten(1)
        k = max(1, round(self.share * flat.shape[1]))
        return flat.topk(k + 1).values[:, -1]


@dataclass(frozen=True)
class Soft:
    """No threshold: dim each pixel by its value, the strongest to black."""

    name: ClassVar[str] = "soft"


Hard = MeanStd | DatasetMean | TopK
Threshold = MeanStd | DatasetMean | TopK | Soft


def soften(maps: Tensor, size: tuple[int, ...]) -> SoftMask:
    """Keep 1 - map / max(map) of each cell, up-sampled to ``size``; a map of zeros keeps everything."""
    return SoftMask(255 - _bytes(maps), size)


def hide(
    threshold: Hard,
    maps: Tensor,
    size: tuple[int, ...],
    before: Mask | None = None,
    covered: tuple[int, ...] | None = None,
    grow: int = 0,
) -> Mask:
    """What ``threshold`` hides of samples of ``size``, added to what was hidden ``before``.

    Maps are scaled to bytes, each to its own peak. They cover the whole sample, or the ``covered`` pixels of its
    middle. What exceeds the threshold is grown by ``grow`` pixels. A mask that would hide a whole sample is not
    applied: there would be nothing left to learn from.
    """
    coarse = _bytes(maps)
    parts = torch.arange(len(maps)).split(PART)
    overall = _overall(coarse, size, covered) if isinstance(threshold, DatasetMean) else math.nan
    levels = []
    for part in parts:
        fine = upsampled(coarse[part], size, covered)
        level = threshold.level(fine, overall) * (1 + ROUNDING)
        hidden = fine > level.reshape(-1, *[1] * (fine.ndim - 1))
        hidden = grown(hidden.float(), grow) > 0 if grow else hidden
        if before is not None:
            hidden = hidden | (before.keep(part) == 0)
        levels.append(level.masked_fill(hidden.flatten(1).all(1), torch.inf))
    mask: Mask = MapMask(coarse, torch.cat(levels), size, covered)
    if grow:
        mask = GrownMask(mask, grow)
    if coarse.shape[1:] == size:  # not coarse at all: one bit per pixel is less than a byte
        mask = BitMask(torch.cat([BitMask.of(mask.keep(part) == 0).bits for part in parts]), size)
    return mask if before is None else BothMasks(before, mask)


def _overall(coarse: Tensor, size: tuple[int, ...], covered: tuple[int, ...] | None) -> float:
    """The mean of all maps, up-sampled to ``size``."""
    parts = coarse.split(PART)
    total = sum(float(upsampled(part, size, covered).sum(dtype=torch.float64)) for part in parts)
    return total / (len(coarse) * torch.Size(size).numel())


def _bytes(maps: Tensor) -> Tensor:
    """Maps that are nowhere negative as bytes, each scaled to its own peak."""
    values = maps.float()
    peak = values.flatten(1).amax(1).reshape(-1, *[1] * (maps.ndim - 1))
    scaled = torch.where(peak > 0, values / peak.clamp(min=torch.finfo(torch.float32).tiny), 0.0)
    return (scaled * 255).round().to(torch.uint8)
