"""Hide parts of training images and fine-tune on what is left: what MaskTune and its control share."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from unspur.data.base import Split
from unspur.data.masks import BitMask, BothMasks, Mask, hidden_shares
from unspur.errors import require
from unspur.parts.swapping import donors_across_classes
from unspur.train.loop import train as train_model
from unspur.train.recipe import Optimiser, require_rate
from unspur.train.schedules import Constant
from unspur.train.session import Session

LOOKED_AT, PART = 2000, 200  # images whose masks are examined: at most, and at a time
CELLS = 16  # rows and columns at which a mask is examined
RARE = 0.01  # share of black pixels: where more are black, as around digits, a black hole is not visible
UNMASKED = 1 / 3  # share of images: if more have no mask, much of the fine-tuning is plain training


class HiddenFacts(TypedDict, total=False):
    """How much is hidden, in how many images nothing is hidden, and what the masks cost to keep."""

    masked_fraction: float
    images_unmasked: int
    bytes_per_mask: int


class Hidden(NamedTuple):
    """What is hidden of so many training images."""

    mask: Mask | None
    images: int

    @classmethod
    def of(cls, split: Split) -> Hidden:
        return cls(split.mask, len(split))

    @property
    def unmasked(self) -> int:
        """The number of images in which nothing is hidden."""
        return self.images if self.mask is None else int((hidden_shares(self.mask) == 0).sum())

    def facts(self) -> HiddenFacts:
        """What a result says of it."""
        if self.mask is None:
            return {"masked_fraction": 0.0, "images_unmasked": self.images, "bytes_per_mask": 0}
        shares = hidden_shares(self.mask)
        return {
            "masked_fraction": float(shares.double().mean()),
            "images_unmasked": int((shares == 0).sum()),
            "bytes_per_mask": self.mask.bytes_each,
        }

    def artifacts(self) -> dict[str, Tensor]:
        """The masks as stored with the run: a bit for each pixel."""
        if self.mask is None:
            return {}
        parts = torch.arange(self.images).split(2000)
        return {"mask_bits": torch.cat([BitMask.of(self.mask.keep(part) < 0.5).bits for part in parts])}


def unmasked_warnings(left: int, images: int) -> list[str]:
    """A sentence if the maps of all ``images``, or of too many of them (``left``), hide nothing.

    >>> unmasked_warnings(33, 100)
    []
    """
    if left == images:
        return [f"Nothing was masked in any of the {images:,} images: the fine-tuning was plain training."]
    if left > UNMASKED * images:
        return [
            f"{left:,} of {images:,} images were left without a mask: nothing in their maps exceeds the threshold. "
            "Lower it (--set threshold.num_std=1), or hide the same share of every image (--set threshold=top_k)."
        ]
    return []


def shared_holes(mask: Mask, y: Tensor, generator: torch.Generator) -> Mask:
    """Also hide in each sample what is hidden in one of another class: then holes say nothing about the class."""
    (donors,) = donors_across_classes(y, 1, generator)
    return BothMasks(mask, mask.subset(donors))


def telling_warnings(masked: Split) -> list[str]:
    """A sentence if the holes alone reveal the class, in images where black is rare and holes are therefore visible.

    One half of some 2,000 images gives each class's mean mask; the masks of the other half are compared with these.
    """
    some = torch.arange(len(masked))[:: max(1, len(masked) // LOOKED_AT)]
    if masked.mask is None or len(masked.sample_shape) != 3 or _black(masked, some) > RARE:
        return []
    share = _told_by_masks(masked.mask, masked.y, some)
    if share < (1 + 1 / len(masked.y.unique())) / 2:
        return []
    return [
        f"What is hidden tells the class: the holes alone are enough to tell it for {100 * share:.0f} % of the images "
        "(mean of classes), so that the fine-tuning can learn their shape. Hide of each image also what is hidden of "
        "one of another class (--set holes=shared)."
    ]


def _black(split: Split, index: Tensor) -> float:
    """The share of black pixels in the images without masks."""
    plain = split.masked(None)
    dark = [(plain.batch(part).x == 0).all(1).float().mean() for part in index.split(PART)]
    return float(torch.stack(dark).mean())


def _told_by_masks(mask: Mask, y: Tensor, index: Tensor) -> float:
    """How often the nearest mean mask of the first half names the class in the second half: the mean over classes."""
    coarse = torch.cat(
        [adaptive_avg_pool2d(mask.keep(part).unsqueeze(1), CELLS).flatten(1) for part in index.split(PART)]
    )
    labels = y[index]
    first = torch.zeros(len(index), dtype=torch.bool)
    first[labels.argsort(stable=True)[::2]] = True  # half of each class
    classes = [label for label in labels[first].unique() if (labels[~first] == label).any()]
    if len(classes) < 2:
        return 0.0
    means = torch.stack([coarse[first & (labels == label)].mean(0) for label in classes])
    told = torch.stack(classes)[torch.cdist(coarse, means).argmin(1)] == labels
    return float(torch.stack([told[~first & (labels == label)].float().mean() for label in classes]).mean())


def require_tuning(lr: float | None, *, restart: bool) -> None:
    """Raise an error for a number that cannot be a rate, and for a rate together with ``restart``."""
    require_rate("finetune_lr", lr)
    require(
        not (restart and lr is not None),
        "finetune_lr is of one epoch that goes on from ERM, and restart trains by ERM's recipe: leave one of them out.",
    )


def fine_tune(
    model: nn.Module, masked: Split, recipe: Optimiser, lr: float | None, *, stage: str, session: Session, restart: bool
) -> float:
    """Train one epoch on masked images, by ERM's recipe at one rate: ``lr``, or ERM's last rate. Returns the rate.

    With ``restart`` it trains the whole of ERM's recipe and returns that recipe's first rate.
    """
    if not restart:
        erm = session.history.get("erm")
        rate = lr if lr is not None else erm[-1]["lr"] if erm else recipe.lr
        recipe = replace(recipe, lr=rate, epochs=1, schedule=Constant(), until_accuracy=None, until_loss=None)
    train_model(model, masked, recipe, stage=stage, session=session)
    return recipe.lr
