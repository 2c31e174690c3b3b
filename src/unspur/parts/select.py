"""Named rules that choose among candidates by their accuracy on validation data, with and without group labels.

Each rule divides the validation samples into groups:

- ``worst_group``: by label and attributes, which somebody must have labelled; the worst group counts (ULE, section 4).
- ``worst_class``: by label alone; the worst class counts.
- ``mined_group``: by label and by whether a biased model is right, since a shortcut misleads where it is wrong; the
  mean over groups counts. Not the worst: among what a model gets wrong there are wrong labels, too.
- ``mean``: all samples are one group.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from unspur.data.base import Split, groups_of
from unspur.errors import UnspurError, require

Rule = Literal["worst_group", "worst_class", "mined_group", "mean"]

FEW = 10  # a group that was mined and has fewer samples is more likely to hold wrong labels than a shortcut's victims


def validation_groups(rule: Rule, val: Split, biased_wrong: Tensor | None = None) -> Tensor:
    """The group of each validation sample, from 0; -1 for one that counts in no group.

    ``biased_wrong`` tells, for ``mined_group``, which samples a biased model gets wrong.
    """
    if not len(val):
        raise UnspurError("There is no validation data to choose on; hold some out, or name one setting only.")
    if rule == "mean":
        return torch.zeros(len(val), dtype=torch.long)
    if rule == "worst_class":
        group: Tensor = val.y.unique(return_inverse=True)[1]
        return group
    if rule == "worst_group":
        require(
            bool(val.attributes),
            "worst_group needs validation data with attributes, and these have none; use mined_group or worst_class.",
        )
        return groups_of(val).id
    if biased_wrong is None:
        raise UnspurError("mined_group needs a biased model's mistakes on the validation data.")
    return mined_groups(val.y, biased_wrong)


def mined_groups(y: Tensor, wrong: Tensor) -> Tensor:
    """Samples by label and by whether a biased model is wrong; -1 where a class has fewer than FEW mistakes.

    >>> y, wrong = torch.tensor([0] * 12 + [1] * 3), torch.tensor([True] * 10 + [False] * 2 + [True, False, False])
    >>> mined_groups(y, wrong).tolist()
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, -1, 2, 2]
    """
    _, group, sizes = (2 * y + wrong).unique(return_inverse=True, return_counts=True)
    few = wrong & (sizes[group] < FEW)
    kept = group[~few].unique(return_inverse=True)[1]
    return torch.full_like(group, -1).masked_scatter(~few, kept)


def group_accuracies(correct: Tensor, group: Tensor) -> Tensor:
    """The accuracy of each candidate on each group: (candidates, samples) to (candidates, groups).

    >>> group_accuracies(torch.tensor([[True, False, True]]), torch.tensor([1, 1, 0]))
    tensor([[1.0000, 0.5000]])
    """
    counted = group >= 0
    membership = torch.nn.functional.one_hot(group[counted]).float()
    return correct[:, counted].float() @ membership / membership.sum(0)


def scores(rule: Rule, correct: Tensor, group: Tensor) -> Tensor:
    """What ``rule`` gives each candidate, from what it gets right and each sample's group.

    >>> correct, group = torch.tensor([[True, False, True], [True, True, True]]), torch.tensor([1, 1, 0])
    >>> scores("worst_group", correct, group), scores("mined_group", correct, group)
    (tensor([0.5000, 1.0000]), tensor([0.7500, 1.0000]))
    """
    accuracy = group_accuracies(correct, group)
    return accuracy.mean(1) if rule == "mined_group" else accuracy.amin(1)


def choose(rule: Rule, correct: Tensor, group: Tensor) -> int:
    """The candidate with the highest score, of equal ones that with the highest accuracy, of equal ones the first.

    >>> a, b, c = [True, True, False, False], [True, True, True, False], [True, False, True, False]
    >>> choose("worst_group", torch.tensor([a, b, c]), torch.tensor([0, 0, 1, 1]))  # 0, 0.5, 0.5; then 0.75 against 0.5
    1
    """
    score, mean = scores(rule, correct, group).tolist(), correct.double().mean(1).tolist()
    return max(range(len(score)), key=lambda number: (score[number], mean[number], -number))
