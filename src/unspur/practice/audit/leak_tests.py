"""Tests of different widths under one p-value."""

from __future__ import annotations

import torch
from torch import Tensor

from unspur.practice.audit.leak_scores import LeakScores, leak_scores


class LeakTests:
    """Tests of different widths that share folds and permutations, so that one p-value covers them all."""

    def __init__(self, y: Tensor, classes: int, seed: int) -> None:
        self.y, self.classes, self.seed = y, classes, seed
        self.names: list[str] = []
        self._features: list[Tensor] = []

    def add(self, name: str, features: Tensor) -> None:
        self.names.append(name)
        self._features.append(features)

    def run(self) -> tuple[LeakScores, Tensor]:
        """The scores in the order in which tests were added, and their p-values."""
        parts: dict[int, LeakScores] = {}
        widths = [features.shape[1] for features in self._features]
        rank = torch.zeros(len(widths), dtype=torch.long)
        ordered: list[int] = []
        for width in sorted(set(widths)):
            members = [number for number, each in enumerate(widths) if each == width]
            stacked = torch.stack([self._features[number] for number in members])
            parts[width] = leak_scores(stacked, self.y, self.classes, seed=self.seed)
            ordered += members
        rank[torch.tensor(ordered)] = torch.arange(len(ordered))
        joined = LeakScores(
            *(torch.cat([getattr(part, name) for part in parts.values()])[rank] for name in LeakScores._fields)
        )
        return joined, joined.p_values()
