"""Where a model looks, compared with where labels leak, and what it loses when that is hidden (MaskTune's own test)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.parts.cues.cells import GRID
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.evidence import HiddenTest, LookedAt
from unspur.practice.audit.model import BATCH, Insight, Model, Predict
from unspur.practice.audit.swap_test import bootstrap
from unspur.saliency.maps import maps_of
from unspur.saliency.threshold import MeanStd, hide

MOST = 240  # images that are looked at


def look_into(
    model: Model, data: Collected, leak_map: Tensor, *, seed: int = 0
) -> tuple[LookedAt | None, HiddenTest | None]:
    """Both tests on images that the model was not trained on; None where only a model's answers are known."""
    if model.insight is None:
        return None, None
    generator = stream(seed, "audit looking")
    cells, right = [], []
    shares = []
    for module, predict, part in zip(model.insight.modules, model.predict, model.parts, strict=True):
        chosen = part[torch.randperm(len(part), generator=generator)[: MOST // len(model.parts)]]
        pictures, y = data.pictures[chosen], data.y[data.pictured[chosen]]
        maps = _maps(module, model.insight, pictures, y)
        cells.append(_by_cell(maps))
        mask = hide(MeanStd(), maps, tuple(pictures.shape[2:]))
        keep = mask.keep(torch.arange(len(pictures)))
        shares.append(1 - keep.mean((1, 2)))
        other = keep.roll(1, 0)  # another image's mask: the images are in random order
        right.append(_right(predict, pictures, y, (torch.ones_like(keep), keep, other)))
    mean = torch.cat(cells).mean(0)
    looked = LookedAt(mean / mean.sum().clamp_min(1e-12), _correlation(mean, leak_map), sum(map(len, cells)))
    plain, hidden, control = torch.cat(right, 1)
    low, high = bootstrap(control - hidden, generator)
    accuracies = (float(plain.mean()), float(hidden.mean()), float(control.mean()))
    return looked, HiddenTest(*accuracies, (low, high), float(torch.cat(shares).mean()), len(plain))


def _maps(module: nn.Module, insight: Insight, pictures: Tensor, y: Tensor) -> Tensor:
    """Class-activation maps, as fine as the leak map if the network has such; otherwise gradients."""
    split = Split(as_taken(pictures, insight.shape), y)
    try:
        return maps_of(module, split, batch_size=BATCH, least=GRID).float()
    except UnspurError:  # no layer of it is a map of the image
        return maps_of(module, split, "gradient", batch_size=BATCH).float()


def as_taken(pictures: Tensor, shape: Sequence[int]) -> Tensor:
    """Pictures (bytes) in the channels and size that a network takes."""
    channels, height, width = shape
    x = pictures if channels == 3 else pictures.float().mean(1, keepdim=True).round().to(torch.uint8)
    if tuple(x.shape[2:]) == (height, width):
        return x
    x = functional.interpolate(x.float(), size=(height, width), mode="bilinear", antialias=True)
    return x.round().clamp(0, 255).to(torch.uint8)


def _by_cell(maps: Tensor) -> Tensor:
    """Each map as shares of the leak map's cells: (n, GRID, GRID); a map of zeros stays zero."""
    coarse = functional.interpolate(maps.unsqueeze(1), size=(4 * GRID, 4 * GRID), mode="bilinear").squeeze(1)
    coarse = functional.avg_pool2d(coarse, 4)
    return coarse / coarse.sum((1, 2), keepdim=True).clamp_min(1e-12)


def _right(predict: Predict, pictures: Tensor, y: Tensor, keeps: tuple[Tensor, ...]) -> Tensor:
    """Whether the model gets each image right under each mask: (masks, n) of 0 and 1."""
    rows = []
    for keep in keeps:
        parts = [
            predict(pictures[index].float() / 255 * keep[index].unsqueeze(1)).argmax(1)
            for index in torch.arange(len(y)).split(BATCH)
        ]
        rows.append((torch.cat(parts) == y).float())
    return torch.stack(rows)


def _correlation(one: Tensor, other: Tensor) -> float | None:
    value = float(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1])
    return value if value == value else None
