"""What can be known about a model without group labels: its answers for validation images, original and changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from unspur.core.files import read_tensors, write_tensors
from unspur.core.progress import Progress, of_stage
from unspur.core.seeds import derive
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.parts.cues.base import Cue
from unspur.parts.swapping import CueExchange, Pairing, SwappedImages, with_copies
from unspur.train.loop import outputs

COPIES = 3  # of each validation image, with cues of other classes' images


@dataclass(frozen=True)
class CueRemoval:
    """Images with the same, neutral cue in each."""

    cues: tuple[Cue, ...]

    def __call__(self, images: Tensor, donors: Tensor, index: Tensor) -> Tensor:
        grey = images.shape[1] == 1
        images = images.expand(-1, 3, -1, -1) if grey else images
        for cue in self.cues:
            images = cue.remove(images)
        return images[:, :1] if grey else images


@dataclass(frozen=True, eq=False)
class Evidence:
    """How far a model gets each validation image right, from 0 to 1."""

    ordinary: Tensor  # as it is
    swapped: Tensor | None = None  # with the cue of another class: the mean over copies
    removed: Tensor | None = None  # with the cue taken away

    def save(self, path: Path) -> None:
        values = {"ordinary": self.ordinary, "swapped": self.swapped, "removed": self.removed}
        write_tensors(path, {name: value for name, value in values.items() if value is not None})

    @staticmethod
    def load(path: Path) -> Evidence | None:
        """What ``save`` wrote; None if the file is missing or damaged."""
        try:
            return Evidence(**read_tensors(path)[0])
        except (UnspurError, TypeError):
            return None


def evidence_of(model: nn.Module, val: Split, cues: Sequence[Cue], seed: int, progress: Progress) -> Evidence:
    """Test ``model`` on every validation image; donors are validation images, too, which trained no weights."""
    ordinary = right(model, val, progress, "validation images")
    if not cues:
        return Evidence(ordinary)
    copies = with_copies(val, CueExchange(tuple(cues)), COPIES, derive(seed, "repair"), originals=False)
    swapped = right(model, copies, progress, "swapped images").view(COPIES, len(val)).mean(0)
    return Evidence(ordinary, swapped, right(model, without_cues(val, cues), progress, "images without the cue"))


def without_cues(split: Split, cues: Sequence[Cue]) -> Split:
    """The same images with each cue removed."""
    own = torch.arange(len(split))
    other = own.roll(1)  # any other image will do: removing a cue needs no donor
    images = SwappedImages(split.x, Pairing(own, other), CueRemoval(tuple(cues)))
    return replace(split, x=images, attributes={}, mask=None)


def right(model: nn.Module, split: Split, progress: Progress, stage: str) -> Tensor:
    """1 for each image that the model gets right, else 0."""
    found = outputs(model, split, progress=of_stage(progress, stage))
    return torch.cat([(logits.argmax(1) == batch.y).float() for batch, logits in found])
