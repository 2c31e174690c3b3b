"""Maps for a whole split, kept as small as they are."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from unspur.core.progress import Done
from unspur.data.base import Split
from unspur.models.base import cam_layer, evaluating
from unspur.saliency.cam import CamKind, cam
from unspur.saliency.gradients import input_gradients

Kind = CamKind | Literal["gradient"]


def maps_of(
    model: nn.Module,
    split: Split,
    kind: Kind = "xgradcam",
    device: torch.device | str = "cpu",
    batch_size: int = 256,
    progress: Done | None = None,
) -> Tensor:
    """A map (n, h, w) in half precision for each sample of ``split``, of the class that the model predicts for it.

    Class-activation maps keep the layer's resolution: 128 bytes an image with `small_cnn`. The kind "gradient" works
    for every model: the absolute input gradient, the largest over an image's channels, at the image's own size (for
    vectors: n, features). Each map is divided by its largest value, so that half precision can hold it; one that is
    zero everywhere stays zero.
    """
    layer = None if kind == "gradient" else cam_layer(model, split.sample_shape)
    parts = []
    for begin in range(0, len(split), batch_size):
        x = split.batch(torch.arange(begin, min(begin + batch_size, len(split))), device).x
        if kind == "gradient":
            with evaluating(model):
                part = input_gradients(model, x).abs()
            part = part.amax(1) if part.ndim == 4 else part
        else:
            part = cam(model, x, layer=layer, kind=kind)
        largest = part.flatten(1).amax(1).reshape(-1, *[1] * (part.ndim - 1))
        parts.append((part / largest.clamp_min(torch.finfo(part.dtype).tiny)).half().cpu())
        if progress:
            progress(min(1.0, (begin + batch_size) / len(split)))
    return torch.cat(parts)
