"""What a training does to bias-aligned and bias-conflicting samples, epoch by epoch (large-LR 6 and Figures 12, 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unspur.data.base import Split, aligned_with
from unspur.metrics.dynamics import logit_norm, loss_ratio, max_loss_ratio, parameter_norm
from unspur.train.moments import Moment, Observer


class Dynamics:
    """Follows losses by alignment, their ratio, and norms; the training does not depend on it.

    It reads the attributes of the training split; without any, it only follows norms. Figures of an epoch:
    ``loss_ratios`` (the conflicting samples' share of each batch's loss, step by step; null without loss),
    ``loss_ratio`` (the largest of them), ``aligned_loss`` and ``conflicting_loss`` (means over the epoch's samples),
    ``logit_norm`` (mean), ``parameter_norm`` (at the end). Losses are those that are minimised, such as focal losses.
    On several devices they cover only the first device's part of each batch.
    """

    def __init__(self, train: Split) -> None:
        self._train = train
        self._split: Split | None = None
        self._conflicting: Tensor | None = None
        self._at: tuple[str, int] | None = None
        self._clear()

    def see(self, moment: Moment) -> None:
        if (moment.stage, moment.epoch) != self._at:  # an epoch that diverged has left its figures behind
            self._at = (moment.stage, moment.epoch)
            self._clear()
        if moment.split is not self._split:
            self._split, self._conflicting = moment.split, self._conflicts(moment.split)
        self._model = moment.model
        self._logit_norms.append(logit_norm(moment.logits))
        if self._conflicting is not None:
            conflicting = self._conflicting[moment.batch.index.cpu()]
            losses = moment.losses.cpu()
            self._ratios.append(loss_ratio(losses, conflicting))
            kind = conflicting.long()
            self._losses += torch.zeros(2, dtype=torch.float64).index_add_(0, kind, losses.double())
            self._counts += torch.bincount(kind, minlength=2)

    def figures(self) -> dict[str, Any]:
        if not self._logit_norms:
            return {}
        found = {
            "loss_ratio": max_loss_ratio(self._ratios),
            "loss_ratios": [None if ratio is None else round(ratio, 4) for ratio in self._ratios] or None,
            **dict(zip(("aligned_loss", "conflicting_loss"), self._means(), strict=True)),
            "logit_norm": sum(self._logit_norms) / len(self._logit_norms),
            "parameter_norm": parameter_norm(self._model),
        }
        self._clear()
        return {name: value for name, value in found.items() if value is not None}

    def _conflicts(self, split: Split) -> Tensor | None:
        aligned = aligned_with(self._train, split) if split.attributes else None
        return None if aligned is None else ~aligned

    def _means(self) -> list[float | None]:
        return [float(loss / count) if count else None for loss, count in zip(self._losses, self._counts, strict=True)]

    def _clear(self) -> None:
        self._ratios: list[float | None] = []
        self._logit_norms: list[float] = []
        self._losses = torch.zeros(2, dtype=torch.float64)
        self._counts = torch.zeros(2, dtype=torch.long)


class Together:
    """Several observers as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def see(self, moment: Moment) -> None:
        for observer in self._observers:
            observer.see(moment)

    def figures(self) -> dict[str, Any]:
        return {name: value for observer in self._observers for name, value in observer.figures().items()}
