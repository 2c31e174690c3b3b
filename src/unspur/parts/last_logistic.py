"""Logistic regression as the last layer of a frozen network, its strength of L2 chosen on validation images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.progress import of_stage
from unspur.data.base import Split
from unspur.errors import require
from unspur.models.base import head_of
from unspur.parts.features import features_of
from unspur.parts.heads import Head
from unspur.parts.logistic_path import logistic_path
from unspur.parts.select import choose, scores, validation_groups
from unspur.train.session import Session

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of L2
Layers = Literal["all", "last"]  # what a method trains


def require_strengths(l2s: Sequence[float]) -> None:
    """Raise an error for numbers that cannot be strengths of L2."""
    require(bool(l2s), "l2s needs at least one value.")
    for l2 in l2s:
        require(l2 > 0, f"l2s must be above 0 but got {l2}.")


def fit_plain(model: nn.Module, train: Split, l2s: Sequence[float], session: Session) -> list[Head]:
    """A head for each strength on the features of the training images, which are stored as the stage ``features``."""
    x, classes = features_of(model, train, session, "features"), head_of(model).out_features
    return logistic_path(x, train.y, l2s, classes, progress=of_stage(session.progress, "plain heads"))


class Judged(NamedTuple):
    """Images on whose features heads are judged, by the mean over classes; without images the first head is best."""

    x: Tensor | None
    y: Tensor
    group: Tensor
    copies: int = 1  # of each image, one after the other: an image counts once, however many there are of it

    @classmethod
    def of(cls, model: nn.Module, split: Split | None, session: Session, stage: str, copies: int = 1) -> Judged:
        """The samples of ``split``: validation images as they are, or copies of them with swapped cues."""
        if split is None:
            none = torch.zeros(0, dtype=torch.long)
            return cls(None, none, none)
        x, group = features_of(model, split, session, stage), validation_groups("swapped", split)
        return cls(x, split.y, group, copies)

    def best(self, heads: Sequence[Head]) -> int:
        return 0 if self.x is None else choose("swapped", self._right(heads), self.group)

    def steadiest(self, heads: Sequence[Head], l2s: Sequence[float]) -> int:
        """The head of the strongest L2 that is within one standard error of the best.

        The standard error is that of the difference on the same images: heads err on mostly the same images, so the
        difference is known far better than either accuracy.
        """
        if self.x is None:
            return 0
        right, best = self._right(heads), self.best(heads)
        images = right.double().view(len(heads), self.copies, -1).mean(1)
        group = self.group[: images.shape[1]]
        short = images[best] - images
        by_class = [short[:, group == label] for label in group.unique()]
        behind = torch.stack([each.mean(1) for each in by_class]).mean(0)
        several = [each for each in by_class if each.shape[1] > 1]  # one image does not tell how much they vary
        error = sum((each.var(1) / each.shape[1] for each in several), torch.zeros_like(behind)).sqrt() / len(by_class)
        near: list[int] = (behind <= error + 1e-9).nonzero().flatten().tolist()  # one image is just its own error
        return max(near, key=lambda number: l2s[number])

    def scores(self, heads: Sequence[Head]) -> list[float | None]:
        """The mean over classes of each head's accuracy."""
        if self.x is None:
            return [None] * len(heads)
        found: list[float | None] = scores("swapped", self._right(heads), self.group).tolist()
        return found

    def _right(self, heads: Sequence[Head]) -> Tensor:
        assert self.x is not None
        logits = [functional.linear(self.x, head.weight, head.bias) for head in heads]
        return torch.stack([each.argmax(1).cpu() == self.y for each in logits])
