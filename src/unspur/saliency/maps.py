"""Maps for a whole split, kept as small as they are."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from unspur.core.progress import Done
from unspur.data.base import Split
from unspur.models.base import cam_layer, evaluating, map_layer
from unspur.saliency.cam import CamKind, cam
from unspur.saliency.gradients import input_gradients

Kind = CamKind | Literal["gradient"]

# A map needs this many rows and columns to hide a part of an image and leave the rest: a cell of a 4x4 map is a
# sixteenth of the image. ResNet-50 at 224 pixels, with which MaskTune was shown on photographs, has 7x7.
FINE = 7


def maps_of(
    model: nn.Module,
    split: Split,
    kind: Kind = "xgradcam",
    device: torch.device | str = "cpu",
    batch_size: int = 256,
    least: int = 1,
    progress: Done | None = None,
) -> Tensor:
    """A map (n, h, w) in half precision for each sample of ``split``, of the class that the model predicts for it.

    Class-activation maps keep the layer's resolution: 128 bytes per image with `small_cnn`. ``least`` is the number of
    rows and columns that they must have. If that takes an earlier layer than the last, the maps are LayerCAM's: there a
    channel may be an edge or a colour that occurs all over an image, and a single weight for it says little. The kind
    "gradient" works for every model: the absolute input gradient, the largest over an image's channels, at the image's
    own size (for vectors: n, features). Each map is divided by its largest value, so that half precision can hold it; a
    map that is zero everywhere stays zero.
    """
    layer, earlier = None, False
    if kind != "gradient":
        layer = cam_layer(model, split.sample_shape, least)
        earlier = layer is not cam_layer(model, split.sample_shape)
        if earlier and kind in ("xgradcam", "gradcam"):
            kind = "layercam"
    parts = []
    for begin in range(0, len(split), batch_size):
        x = split.batch(torch.arange(begin, min(begin + batch_size, len(split))), device).x
        if kind == "gradient":
            with evaluating(model):
                part = input_gradients(model, x).abs()
            part = part.amax(1) if part.ndim == 4 else part
        else:
            part = cam(model, x, layer=layer, kind=kind, rectified=earlier)
        largest = part.flatten(1).amax(1).reshape(-1, *[1] * (part.ndim - 1))
        parts.append((part / largest.clamp_min(torch.finfo(part.dtype).tiny)).half().cpu())
        if progress:
            progress(min(1.0, (begin + batch_size) / len(split)))
    return torch.cat(parts)


def covered_by_maps(model: nn.Module, sample_shape: torch.Size, least: int = FINE) -> tuple[int, int]:
    """The size (rows, columns) of the part in the middle of an image that its class-activation map covers.

    Convolutions without padding leave the edges out: the 8x8 cells of `small_cnn` are two pixels apart and cover 16 of
    28 pixels, the outermost cells 6.5 pixels from the edge. If they were stretched over the whole image, a mark 3 to 8
    pixels from the corner would appear up to 5 pixels away from where it is.
    """
    return map_layer(model, sample_shape, least).covered


def coarse_warnings(model: nn.Module, sample_shape: torch.Size, least: int = FINE) -> list[str]:
    """A sentence if maps of ``least`` rows and columns need another layer than the last, or no layer has them."""
    last, used = (map_layer(model, sample_shape, cells) for cells in (1, least))
    size = _size(tuple(sample_shape[-2:]))
    if min(used.cells) < least:
        shorter = min(sample_shape[-2:])
        enough = 32 * math.ceil(shorter * least / min(used.cells) / 32)
        return [
            f"The finest map of the network has {_size(used.cells)} cells for images of {size}, fewer than "
            f"{_size((least, least))}: its masks hide large parts or nothing; use larger images (--set "
            f"data.size={enough})."
        ]
    if used.module is not last.module:
        return [
            f"The network's last map has {_size(last.cells)} cells for images of {size}, too few to hide a part of an "
            f"image: the maps are LayerCAM's of the earlier layer {used.name}, {_size(used.cells)}; larger images "
            "have finer ones."
        ]
    return []


def _size(sides: tuple[int, ...]) -> str:
    return "x".join(str(side) for side in sides)
