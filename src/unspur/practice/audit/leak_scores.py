"""How well labels can be predicted from a few numbers per image: cross-validated, many tests and permutations at once.

The classifier is linear discriminant analysis with equal priors. Permuted labels only change class means, so one
scatter matrix serves all permutations of a test, and one batched solve serves all tests, folds and permutations.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unspur.core.seeds import stream

FOLDS = 3
PERMUTATIONS = 200
RIDGE = 1e-3  # added to the within-class covariance of features of unit variance
CLIP = 5.0  # standard deviations; a single outlier must not distort a whole fit
COLUMNS = 2_000  # class scores of all permutations that are computed at once: more classes mean fewer permutations
CHUNK = 8  # tests computed at once, which bounds the memory


class LeakScores(NamedTuple):
    """What ``leak_scores`` measures for each test."""

    balanced: Tensor  # (tests,) cross-validated balanced accuracy
    permuted: Tensor  # (tests, permutations) the same with permuted labels
    margins: Tensor  # (tests, n, classes) each image's class scores from the fold that did not see it
    separation: Tensor  # (tests,) robust distance of the classes' scores, see ``separation_of``

    def p_values(self) -> Tensor:
        """Each test's p-value, corrected over all tests: how often the best test under permutation is as good.

        Tests are standardised by their own mean and deviation under permutation.
        """
        mean, std = self.permuted.mean(1, keepdim=True), self.permuted.std(1, keepdim=True).clamp_min(1e-6)
        best = ((self.permuted - mean) / std).max(0).values
        own = (self.balanced.unsqueeze(1) - mean) / std
        return (1 + (best.unsqueeze(0) >= own).sum(1)) / (1 + len(best))


def permutations_for(classes: int) -> int:
    """How many permutations are affordable with so many classes.

    >>> permutations_for(2), permutations_for(50), permutations_for(1000)
    (200, 40, 20)
    """
    return max(20, min(PERMUTATIONS, COLUMNS // classes))


def fold_of(y: Tensor, seed: int, folds: int = FOLDS) -> Tensor:
    """A fold for each sample, every class spread evenly over the folds."""
    generator, fold = stream(seed, "audit folds"), torch.zeros_like(y)
    for label in y.unique():
        members = (y == label).nonzero().squeeze(1)
        order = members[torch.randperm(len(members), generator=generator)]
        fold[order] = torch.arange(len(members)) % folds
    return fold


def permuted_labels(y: Tensor, count: int, seed: int) -> Tensor:
    """The labels, then ``count`` permutations of them: (n, 1 + count)."""
    generator = stream(seed, "audit permutations")
    columns = [y, *(y[torch.randperm(len(y), generator=generator)] for _ in range(count))]
    return torch.stack(columns, 1)


def standardised(features: Tensor) -> Tensor:
    """Each feature (second last dimension: images) with mean 0 and deviation 1, outliers clipped."""
    features = features.nan_to_num(0.0, 0.0, 0.0)
    mean, std = features.mean(-2, keepdim=True), features.std(-2, keepdim=True)
    return ((features - mean) / std.clamp_min(1e-6)).clamp(-CLIP, CLIP)


def leak_scores(
    features: Tensor, y: Tensor, classes: int, *, seed: int = 0, permutations: int | None = None
) -> LeakScores:
    """Score ``features`` (tests, images, numbers): each test predicts labels ``y`` from its own numbers alone."""
    count = permutations_for(classes) if permutations is None else permutations
    labels, fold = permuted_labels(y, count, seed), fold_of(y, seed)
    parts = [_scores(standardised(chunk.float()), labels, fold, classes) for chunk in features.split(CHUNK)]
    balanced = torch.cat([part[0] for part in parts])
    margins = torch.cat([part[1] for part in parts])
    separation = torch.stack([separation_of(scores, y) for scores in margins])
    return LeakScores(balanced[:, 0], balanced[:, 1:], margins, separation)


def _scores(x: Tensor, labels: Tensor, fold: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Balanced accuracy (tests, label columns), and the first column's class scores (tests, n, classes)."""
    tests, n, _ = x.shape
    columns = labels.shape[1]
    margins = torch.zeros(tests, n, classes)
    right = torch.zeros(tests, columns, classes)
    for number in fold.unique().tolist():
        held, kept = (fold == number).nonzero().squeeze(1), (fold != number).nonzero().squeeze(1)
        coefficients, bias = discriminant(x[:, kept], labels[kept], classes)
        flat = coefficients.permute(0, 2, 1, 3).reshape(tests, x.shape[2], columns * classes)
        scores = torch.baddbmm(bias.reshape(tests, 1, -1), x[:, held], flat).reshape(tests, len(held), columns, classes)
        margins[:, held] = scores[:, :, 0]
        truth = labels[held].expand(tests, -1, -1)
        hit = scores.argmax(3) == truth
        for label in range(classes):
            right[:, :, label] += (hit & (truth == label)).sum(1)
    sizes = torch.stack([(labels[:, 0] == label).sum() for label in range(classes)]).clamp_min(1)
    return (right / sizes).mean(2), margins


def discriminant(x: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Coefficients (tests, columns, numbers, classes) and biases of discriminants with equal priors.

    With class means m_k and pooled covariance S: score_k(x) = m_k' S^-1 x - m_k' S^-1 m_k / 2.
    """
    x = x.double()
    centre = x.mean(1, keepdim=True)
    x = x - centre
    tests, n, width = x.shape
    hot = torch.nn.functional.one_hot(labels, classes).double()  # (n, columns, classes)
    counts = hot.sum(0).clamp_min(1)
    means = (x.transpose(1, 2) @ hot.reshape(n, -1)).reshape(tests, width, -1, classes) / counts
    means = means.permute(0, 2, 1, 3)  # (tests, columns, numbers, classes)
    between = (means * counts.unsqueeze(1)) @ means.transpose(2, 3)
    within = ((x.transpose(1, 2) @ x).unsqueeze(1) - between) / max(n - classes, 1)
    within = within + RIDGE * torch.eye(width, dtype=x.dtype)
    coefficients = torch.linalg.solve(within, means)
    moved = means + centre.unsqueeze(1).transpose(2, 3)
    bias = -0.5 * (means * coefficients).sum(2) - ((moved - means) * coefficients).sum(2)
    return coefficients.float(), bias.float()


def separation_of(scores: Tensor, y: Tensor) -> Tensor:
    """The distance of a class from the rest in its own score, in robust deviations; for the class with the largest.

    |median of the class - median of the others| / sqrt((s1^2 + s2^2) / 2), each s the median absolute deviation
    times 1.4826. Unlike accuracy it does not fall when a few images go against the rule.

    >>> scores = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 9.0], [0.0, 10.0], [0.0, 11.0]])
    >>> round(float(separation_of(scores, torch.tensor([0, 0, 0, 1, 1, 1]))), 2)  # (10 - 1) / 1.4826
    6.07
    """
    best = torch.zeros(())
    for label in range(scores.shape[1]):
        own = scores[:, label] - (scores.sum(1) - scores[:, label]) / max(scores.shape[1] - 1, 1)
        inside, outside = own[y == label], own[y != label]
        if len(inside) < 2 or len(outside) < 2:
            continue
        spread = (_spread(inside) ** 2 + _spread(outside) ** 2).div(2).sqrt()
        best = torch.maximum(best, (inside.median() - outside.median()).abs() / spread.clamp_min(1e-6))
    return best


def _spread(values: Tensor) -> Tensor:
    """1.4826 x the median absolute deviation, but at least a quarter of the deviation: many values may be equal."""
    robust = 1.4826 * (values - values.median()).abs().median()
    return torch.maximum(robust, values.std() / 4)
