"""What is an object in an image and what is background, for the background share of attributions (large-LR 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from unspur.data.base import Split
from unspur.errors import UnspurError, require
from unspur.models.spec import IMAGENET
from unspur.models.torchvision_compat import import_torchvision
from unspur.models.weights import read_weights

DEEPLAB = "deeplabv3"
SIDE = 256  # smaller images are enlarged to this height for DeepLabV3, which was trained on photographs


def foreground(source: str, split: Split, index: Tensor) -> Tensor:
    """Masks (n, height, width) of the objects in the samples at ``index``.

    ``source`` is ``deeplabv3``, or a .npy file with a mask for each sample of ``split``: 0 is background.
    """
    shape = split.sample_shape
    require(len(shape) == 3, f"Only images have a foreground, but these samples have the shape {tuple(shape)}.")
    if source == DEEPLAB:
        return segmented(deeplab(), split.batch(index).x)
    return read_masks(Path(source), (len(split), *shape[1:]))[index]


def read_masks(path: Path, shape: tuple[int, ...]) -> Tensor:
    """The masks in a .npy file, True where it is not 0."""
    try:
        masks = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise UnspurError(f"The masks {path} do not exist; give a .npy file, or {DEEPLAB}.") from None
    except (ValueError, OSError, EOFError):
        raise UnspurError(f"{path} is not a .npy file of numbers; save the masks with numpy.save.") from None
    if not isinstance(masks, np.ndarray) or masks.shape != shape:
        got = getattr(masks, "shape", "several arrays")
        raise UnspurError(f"The masks must have the shape {shape}, one for each test image, but {path} has {got}.")
    return torch.from_numpy(masks != 0)


@torch.no_grad()
def segmented(network: nn.Module, x: Tensor, batch_size: int = 8) -> Tensor:
    """Where ``network``, a segmenter as torchvision has them, sees any class but 0, the background."""
    mean, std = (torch.tensor(values).reshape(1, 3, 1, 1) for values in IMAGENET)
    parts = []
    for part in x.split(batch_size):
        height, width = size = part.shape[2:]
        large = part.expand(-1, 3, -1, -1)
        if height < SIDE:
            large = interpolate(large, size=(SIDE, round(SIDE * width / height)), mode="bilinear")
        logits: Any = network((large - mean) / std)
        parts.append(interpolate(logits["out"], size=size, mode="bilinear").argmax(1) != 0)
    return torch.cat(parts)


def deeplab() -> nn.Module:
    """torchvision's DeepLabV3 with ResNet-50; its published weights must be in torch's download folder."""
    segmentation = import_torchvision().models.segmentation
    weights = segmentation.DeepLabV3_ResNet50_Weights.DEFAULT
    path = Path(torch.hub.get_dir()) / "checkpoints" / weights.url.rpartition("/")[2]
    if not path.exists():
        raise UnspurError(f"The weights of DeepLabV3 are not here; get {weights.url} and put it at {path}.")
    network: nn.Module = segmentation.deeplabv3_resnet50(
        weights=None, weights_backbone=None, num_classes=len(weights.meta["categories"]), aux_loss=True
    )
    try:
        network.load_state_dict(read_weights(path))
    except RuntimeError:
        raise UnspurError(f"{path} does not hold the weights of DeepLabV3; get {weights.url} anew.") from None
    return network.eval()
