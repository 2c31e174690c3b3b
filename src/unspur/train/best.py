"""Which weights of a fine-tuning to keep, by what a user without group labels has."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from unspur.data.base import Split
from unspur.train.mining import wrong
from unspur.train.session import Session


def val_accuracy(model: nn.Module, val: Split | None, mined: Tensor | None, session: Session) -> dict[str, float]:
    """Accuracy on the mined and on the other samples of a validation set; on all where there are no two such groups."""
    if val is None or not len(val):
        return {}
    right = (~wrong(model, val, session)).double()
    if mined is None or not mined.any() or mined.all():
        return {"val_accuracy": float(right.mean())}
    return {"val_mined_accuracy": float(right[mined].mean()), "val_other_accuracy": float(right[~mined].mean())}


class BestOnMined:
    """Remembers the weights that are right on most mined and most other samples of a validation set.

    The score is the mean of the accuracy on the mined samples and that on the others, so that a few samples without the
    shortcut count as much as the many with it; of equal scores the first counts. It needs no group labels.
    """

    def __init__(self, model: nn.Module, val: Split | None, mined: Tensor | None, stage: str, session: Session) -> None:
        self.model, self.val, self.mined = model, val, mined
        self.stage, self.session = stage, session
        self.best = session.load(stage)

    def review(self, step: int) -> dict[str, float]:
        """Score the weights as they are after ``step`` steps, and keep them if none were better."""
        if self._why_not():
            return {}
        accuracy = val_accuracy(self.model, self.val, self.mined, self.session)
        score = sum(accuracy.values()) / 2
        if self.best is None or score > self.best["score"]:
            weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
            self.best = {"model": weights, "step": step, "score": score}
            self.session.save(self.stage, self.best)
        return accuracy

    def restore(self) -> dict[str, Any]:
        """Give the model its best weights back and tell how they were chosen."""
        if self.best is None:
            return {"by": "the last step", "why": self._why_not()}
        assert self.val is not None and self.mined is not None  # or nothing would have been scored
        self.model.load_state_dict(self.best["model"])
        judges = {"mined": int(self.mined.sum()), "of": len(self.val)}  # few mined ones make a rough score
        return {"by": "mined validation groups", "step": self.best["step"], "score": self.best["score"], **judges}

    def _why_not(self) -> str | None:
        if self.val is None or self.mined is None or not len(self.val):
            return "There is no validation set."
        if not self.mined.any() or self.mined.all():
            return f"Mining took {int(self.mined.sum())} of the {len(self.val)} validation samples."
        return None
