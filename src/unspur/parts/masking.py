"""Hide parts of training images and fine-tune on what is left: what MaskTune and its control share."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor, nn

from unspur.data.base import Split
from unspur.data.masks import BitMask, Mask, hidden_shares
from unspur.train.loop import train as train_model
from unspur.train.recipe import Constant, Optimiser
from unspur.train.session import Session

UNMASKED = 1 / 3  # of the images: more of them without a mask, and much of the fine-tuning is plain training


class HiddenFacts(TypedDict, total=False):
    """How much is hidden, of how many images nothing is, and what the masks cost to keep."""

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


def unmasked_warnings(facts: HiddenFacts, images: int) -> list[str]:
    """A sentence if nothing is hidden of any of ``images``, or nothing of too many of them.

    >>> unmasked_warnings({"images_unmasked": 33}, 100)
    []
    """
    left = facts["images_unmasked"]
    if left == images:
        return [f"Nothing was masked in any of the {images:,} images: the fine-tuning was plain training."]
    if left > UNMASKED * images:
        return [
            f"{left:,} of {images:,} images were left without a mask: nothing in their maps exceeds the threshold. "
            "Lower it (--set threshold.num_std=1), or hide the same share of every image (--set threshold=top_k)."
        ]
    return []


def fine_tune(
    model: nn.Module, masked: Split, recipe: Optimiser, lr: float | None, *, stage: str, session: Session
) -> float:
    """One epoch on masked images, as ERM trained but at one rate: ``lr``, or the last that ERM used. Returns it."""
    erm = session.history.get("erm")
    rate = lr if lr is not None else erm[-1]["lr"] if erm else recipe.lr
    once = replace(recipe, lr=rate, epochs=1, schedule=Constant(), until_accuracy=None, until_loss=None)
    train_model(model, masked, once, stage=stage, session=session)
    return once.lr
