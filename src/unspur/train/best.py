"""Which weights of a fine-tuning to keep, by what a user without group labels has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from unspur.data.base import Split
from unspur.train.loop import outputs
from unspur.train.losses import cross_entropy
from unspur.train.session import Session


def val_scores(model: nn.Module, val: Split | None, mined: Tensor | None, session: Session) -> dict[str, float]:
    """Accuracy and loss on the mined and the other samples of a validation set; on all if there are no two groups."""
    if val is None or not len(val):
        return {}
    seen = [
        (cross_entropy(logits, batch).cpu(), (logits.argmax(1) == batch.y).cpu())
        for batch, logits in outputs(model, val, session.device)
    ]
    losses, right = (torch.cat(parts).double() for parts in zip(*seen, strict=True))
    if mined is None or not mined.any() or mined.all():
        return {"val_accuracy": float(right.mean()), "val_loss": float(losses.mean())}
    return {
        f"val_{group}_{name}": float(values[members].mean())
        for group, members in (("mined", mined), ("other", ~mined))
        for name, values in (("accuracy", right), ("loss", losses))
    }


def balanced_loss(scores: Mapping[str, float]) -> float:
    """The mean of the loss on mined and that on other samples."""
    return (scores["val_mined_loss"] + scores["val_other_loss"]) / 2


class BestOnMined:
    """Remembers the weights that explain mined and other samples of a validation set best.

    What counts is the mean of the loss on the mined samples and that on the others, so that a few samples without the
    shortcut count as much as the many with it; of equal losses the first counts. It needs no group labels. Accuracy
    would be coarse: on Colored MNIST at 1 % a validation set of 5,000 has 45 such samples, and during fine-tuning the
    same ones stay right while their loss grows.
    """

    def __init__(self, model: nn.Module, val: Split | None, mined: Tensor | None, stage: str, session: Session) -> None:
        self.model, self.val, self.mined = model, val, mined
        self.stage, self.session = stage, session
        self.best = session.load(stage)

    def review(self, step: int) -> dict[str, float]:
        """Score the weights as they are after ``step`` steps, and keep them if none were better."""
        if self._why_not():
            return {}
        scores = val_scores(self.model, self.val, self.mined, self.session)
        loss = balanced_loss(scores)
        if self.best is None or loss < self.best["loss"]:
            weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
            self.best = {"model": weights, "step": step, "loss": loss}
            self.session.save(self.stage, self.best)
        return scores

    def restore(self) -> dict[str, Any]:
        """Give the model its best weights back and tell how they were chosen."""
        if self.best is None:
            return {"by": "the last step", "why": self._why_not()}
        assert self.val is not None and self.mined is not None  # or nothing would have been scored
        self.model.load_state_dict(self.best["model"])
        judges = {"mined": int(self.mined.sum()), "of": len(self.val)}
        return {"by": "mined validation groups", "step": self.best["step"], "loss": self.best["loss"], **judges}

    def _why_not(self) -> str | None:
        if self.val is None or self.mined is None or not len(self.val):
            return "There is no validation set."
        if not self.mined.any() or self.mined.all():
            return f"Mining took {int(self.mined.sum())} of the {len(self.val)} validation samples."
        return None
