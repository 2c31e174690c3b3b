"""A set made of base images and shortcuts that usually agree with the class: Planted(base, shortcuts, conflict).

The base comes from the class that a set inherits beside this one; the fields here say how often the shortcuts conflict.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unspur.core.seeds import data_stream
from unspur.data.shortcuts.assign import assign_evenly, assign_like_training, check_conflict
from unspur.data.shortcuts.drawn import Shortcut
from unspur.data.spec import DataSpec


@dataclass(frozen=True)
class Planted(DataSpec):
    """What all sets with a planted shortcut have in common. Validation samples are planted like training samples."""

    usual_conflict: ClassVar[float]  # the paper's

    seed: int = 0  # of the split and of everything that is planted
    conflict: float | None = None  # share of bias-conflicting training samples, in every class; none: the paper's
    conflict_count: int | None = None  # their exact number in the training part, instead of the share

    def __post_init__(self) -> None:
        super().__post_init__()
        check_conflict(self.conflict, self.conflict_count)

    @property
    def share(self) -> float | None:
        """The share of bias-conflicting training samples; None if their number is given instead."""
        return self.usual_conflict if self.conflict is None and self.conflict_count is None else self.conflict

    @property
    @abc.abstractmethod
    def shortcuts(self) -> Mapping[str, Shortcut]:
        """What is planted, by the name of the attribute that holds its values."""

    def regions(self, sample_shape: torch.Size) -> dict[str, Tensor]:
        spurious = torch.zeros(tuple(sample_shape[-2:]), dtype=torch.bool)
        for shortcut in self.shortcuts.values():
            region = shortcut.region(sample_shape)
            if region is None:
                return {}
            spurious |= region
        return {"core": ~spurious, "spurious": spurious}

    def like_training(
        self, part: str, y: Tensor, values: int, *, training: int, aligned: Tensor | None = None, what: str = ""
    ) -> Tensor:
        """Values for the labels of a part that conflict as often as those of the ``training`` samples.

        ``what`` makes the draws of several shortcuts in the same images independent.
        """
        return assign_like_training(
            part,
            y,
            values,
            data_stream(self.seed, f"assign {what}{part}"),
            training=training,
            conflict=self.share,
            conflict_count=self.conflict_count,
            aligned=aligned,
        )

    def independent(self, test: str, y: Tensor, values: int) -> Tensor:
        """Values for the test set ``test`` that are independent of its labels."""
        return assign_evenly(y, values, data_stream(self.seed, f"assign {test}"))

    def planted(self, part: str, shortcut: Shortcut, images: Tensor, values: Tensor) -> Tensor:
        """The images of a part with a shortcut drawn on them."""
        return shortcut.apply(images, values, data_stream(self.seed, f"draw {part}"))
