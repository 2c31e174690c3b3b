"""Marks that lie at the same pixels in many images, however faint: found by fine detail that nature does not repeat.

Each pixel's detail (the image minus its blurred version) is weighted by how the classes' means differ there, divided by
its variance: a discriminant with a diagonal covariance for each cell. Objects move by more than a pixel between images,
marks do not.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from unspur.parts.cues.cells import GRID
from unspur.practice.audit.leak_scores import fold_of, separation_of

BATCH = 256


class PatternScores(NamedTuple):
    """What ``pattern_scores`` measures in each cell."""

    balanced: Tensor  # (grid, grid)
    separation: Tensor  # (grid, grid)
    margins: Tensor  # (grid, grid, n, classes)


def detail(images: Tensor) -> Tensor:
    """Bytes (n, 3, s, s) minus their mean over 3 x 3 pixels, compressed so that strong edges do not dominate."""
    x = images.float() / 255
    fine = x - functional.avg_pool2d(functional.pad(x, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    return torch.tanh(fine * 8)


def pattern_scores(images: Tensor, y: Tensor, classes: int, *, grid: int = GRID, seed: int = 0) -> PatternScores:
    """Predict labels from fine detail at fixed pixels of each cell.

    ``images`` are bytes (n, 3, s, s), s a multiple of ``grid``.
    """
    fold = fold_of(y, seed)
    folds = int(fold.max()) + 1
    sums, squares, counts = _moments(images, y, fold, folds, classes)
    margins = torch.zeros(grid, grid, len(y), classes)
    for number in range(folds):
        count = (counts.sum(0) - counts[number]).clamp_min(1)
        mean = (sums.sum(0) - sums[number]) / count[:, None, None, None]
        variance = (squares.sum(0) - squares[number]) / count.sum() - (
            mean * (count / count.sum())[:, None, None, None]
        ).sum(0) ** 2
        weight = (mean - mean.mean(0)) / (variance + 1e-4)
        held = (fold == number).nonzero().squeeze(1)
        for index in held.split(BATCH):
            fine = detail(images[index])
            scores = torch.stack(
                [_by_cell(fine * w - w * m / 2, grid) for w, m in zip(weight, mean + mean.mean(0), strict=True)], -1
            )
            margins[:, :, index] = scores.permute(1, 2, 0, 3)
    flat = margins.flatten(0, 1)
    hit = flat.argmax(2) == y
    recall = torch.stack([hit[:, y == label].float().mean(1) for label in range(classes) if (y == label).any()])
    separation = torch.stack([separation_of(scores, y) for scores in flat])
    return PatternScores(recall.mean(0).reshape(grid, grid), separation.reshape(grid, grid), margins)


def _moments(images: Tensor, y: Tensor, fold: Tensor, folds: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of detail by fold and class, of its square by fold, and counts."""
    shape = images.shape[1:]
    sums, squares = torch.zeros(folds, classes, *shape), torch.zeros(folds, *shape)
    for index in torch.arange(len(y)).split(BATCH):
        fine = detail(images[index])
        place = fold[index] * classes + y[index]
        sums.view(folds * classes, *shape).index_add_(0, place, fine)
        squares.index_add_(0, fold[index], fine**2)
    counts = torch.bincount(fold * classes + y, minlength=folds * classes).reshape(folds, classes).float()
    return sums, squares, counts


def _by_cell(x: Tensor, grid: int) -> Tensor:
    """Sums over channels and the pixels of each cell: (n, grid, grid)."""
    side = x.shape[-1] // grid
    return functional.avg_pool2d(x.sum(1, keepdim=True), side).squeeze(1) * side * side
