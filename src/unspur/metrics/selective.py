"""Selective classification: when to abstain, and what that costs (MaskTune, 2.2 and 4.2): pure functions.

A model answers where its confidence is at least a threshold and abstains elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from unspur.errors import require

COVERAGES = (1.0, 0.95, 0.9, 0.85, 0.8)  # those of MaskTune's Tables 4 and 7


class Scores(NamedTuple):
    """For each sample, the class to answer with and how confident the model is of it."""

    pred: Tensor
    confidence: Tensor


def softmax_response(logits: Tensor) -> Scores:
    """The largest probability of a single model (Geifman and El-Yaniv; the baseline SR of Table 4).

    >>> softmax_response(torch.tensor([[0.0, 0.0], [0.0, 1e3]]))
    Scores(pred=tensor([0, 1]), confidence=tensor([0.5000, 1.0000], dtype=torch.float64))
    """
    return _best(logits.double().log_softmax(1))


def product_response(initial: Tensor, final: Tensor) -> Scores:
    """The largest product of two models' probabilities of the same class: max_i P_init_i P_final_i (4.2).

    Takes logits, and each model's pass through a softmax once. The authors' code passes probabilities through a second
    one, which flattens them and changes which samples are answered. The product is not normalised again: it is high
    only where both models are sure of the same class.

    >>> a, b = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.3, 0.7]])
    >>> product_response(a.log(), b.log())  # 0.9 * 0.3 against 0.1 * 0.7
    Scores(pred=tensor([0]), confidence=tensor([0.2700], dtype=torch.float64))
    """
    _same_shape(initial, final)
    return _best(initial.double().log_softmax(1) + final.double().log_softmax(1))


def hard_agreement(initial: Tensor, final: Tensor) -> Scores:
    """Confidence 1 where both models predict the same class and 0 elsewhere: answer at threshold 1 (2.2).

    >>> hard_agreement(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), torch.tensor([[5.0, 0.0], [0.0, 5.0]]))
    Scores(pred=tensor([0, 1]), confidence=tensor([1., 0.], dtype=torch.float64))
    """
    _same_shape(initial, final)
    pred = final.argmax(1)
    return Scores(pred, (initial.argmax(1) == pred).double())


def answers(confidence: Tensor, threshold: float) -> Tensor:
    """Which samples the model answers: those with at least the threshold's confidence.

    >>> answers(torch.tensor([0.5, 0.25]), 0.5)
    tensor([ True, False])
    """
    return confidence >= threshold


def require_coverage(coverage: float) -> None:
    """Refuse what is no share."""
    require(0 < coverage <= 1, f"--coverage is a share above 0 and up to 1, such as 0.9, but got {coverage:g}.")


def samples_for(coverage: float) -> int:
    """How many validation samples a threshold for ``coverage`` needs: one at least on either side of it.

    >>> samples_for(0.9), samples_for(0.05), samples_for(1.0)
    (10, 20, 1)
    """
    return math.ceil(round(1 / min(coverage, 1 - coverage if coverage < 1 else 1), 6))


def threshold_for(confidence: Tensor, coverage: float) -> float:
    """The threshold at which a share ``coverage`` of validation samples with these confidences is answered (4.2).

    It is the ceil(coverage n)-th largest confidence: of all thresholds that answer at least the share asked for, one
    that answers fewest. Samples with equal confidence are answered together, so that ties may raise the coverage.
    The paper answers above gamma; gamma is anything between this threshold and the next lower confidence.

    >>> threshold_for(torch.tensor([0.75, 1.0, 0.25, 0.5]), 0.5)
    0.75
    """
    n = len(confidence)
    require_coverage(coverage)
    require(
        n >= samples_for(coverage),
        f"The validation set is too small for coverage {coverage:g}: it has {n} samples and needs at least "
        f"{samples_for(coverage)}, so that one of them can be told from the rest. Use more validation data or another "
        "coverage.",
    )
    require(not bool(confidence.isnan().any()), "Some confidences are not numbers; the model's outputs are not finite.")
    return float(confidence.sort(descending=True).values[math.ceil(round(coverage * n, 6)) - 1])


class Selective(NamedTuple):
    """How many of n samples were answered, the share, and the share of wrong answers (None: nothing was answered)."""

    n: int
    answered: int
    coverage: float
    error: float | None


def selective(answered: Tensor, correct: Tensor) -> Selective:
    """Coverage and error (also called selective risk) of the answers given.

    >>> selective(torch.tensor([True, True, False, True]), torch.tensor([True, False, False, True]))
    Selective(n=4, answered=3, coverage=0.75, error=0.3333333333333333)
    """
    n, given = len(answered), int(answered.sum())
    require(n > 0, "Coverage is a share of samples, but there are none.")
    wrong = int((answered & ~correct).sum())
    return Selective(n, given, given / n, wrong / given if given else None)


def selective_by_group(answered: Tensor, correct: Tensor, group: Tensor) -> dict[int, Selective]:
    """Coverage and error of each group: a good mean can hide a group that is never answered, or mostly wrong.

    >>> yes, no = True, False
    >>> selective_by_group(torch.tensor([yes, yes, no]), torch.tensor([yes, no, yes]), torch.tensor([0, 0, 3]))[3]
    Selective(n=1, answered=0, coverage=0.0, error=None)
    """
    return {g: selective(answered[group == g], correct[group == g]) for g in sorted(set(group.tolist()))}


def at_coverages(
    confidence: Tensor, correct: Tensor, validation: Tensor, coverages: Sequence[float] = COVERAGES
) -> dict[float, Selective]:
    """Coverage and error on test data at thresholds that give each coverage on validation confidences (Tables 4, 7).

    Coverages are left out that the validation set is too small for: nobody asked for them.

    >>> test, val = torch.tensor([0.9, 0.8, 0.1]), torch.tensor([0.2, 0.4, 0.6, 0.8])
    >>> at_coverages(test, torch.tensor([True, False, False]), val, (0.5,))
    {0.5: Selective(n=3, answered=2, coverage=0.6666666666666666, error=0.5)}
    """
    possible = [c for c in coverages if len(validation) >= samples_for(c)]
    return {c: selective(answers(confidence, threshold_for(validation, c)), correct) for c in possible}


class RiskCoverage(NamedTuple):
    """The curve, a point for each distinct confidence from the largest: threshold, coverage and error there."""

    threshold: Tensor
    coverage: Tensor
    risk: Tensor


def risk_coverage(confidence: Tensor, correct: Tensor) -> RiskCoverage:
    """Error among the answered samples against the share answered, at every threshold that makes a difference.

    >>> curve = risk_coverage(torch.tensor([0.9, 0.5, 0.5, 0.1]), torch.tensor([True, True, False, False]))
    >>> curve.coverage.tolist(), [round(risk, 4) for risk in curve.risk.tolist()]
    ([0.25, 0.75, 1.0], [0.0, 0.3333, 0.5])
    """
    require(len(confidence) > 0, "A risk-coverage curve needs samples, but there are none.")
    threshold, place, count = torch.unique(confidence, return_inverse=True, return_counts=True)
    wrong = torch.bincount(place, weights=(~correct).double(), minlength=len(threshold))
    given = count.flip(0).cumsum(0)
    return RiskCoverage(threshold.flip(0), given / len(confidence), wrong.flip(0).cumsum(0) / given)


def aurc(confidence: Tensor, correct: Tensor) -> float:
    """The area under the risk-coverage curve: the mean, over all samples, of the error when each sets the threshold.

    (1/n) sum_i risk(threshold = confidence_i), after Geifman, Uziel and El-Yaniv (2019). Samples with equal confidence
    share one risk, so that their order does not matter.

    >>> correct = torch.tensor([True, True, False, False])
    >>> round(aurc(torch.tensor([0.9, 0.5, 0.5, 0.1]), correct), 4)  # (0 + 1/3 + 1/3 + 1/2) / 4
    0.2917
    """
    curve = risk_coverage(confidence, correct)
    share = torch.diff(curve.coverage, prepend=curve.coverage.new_zeros(1))
    return float((curve.risk * share).sum())


def _best(log_probability: Tensor) -> Scores:
    top, pred = log_probability.max(1)
    return Scores(pred, top.exp())


def _same_shape(initial: Tensor, final: Tensor) -> None:
    require(
        initial.shape == final.shape,
        "Two models' logits must be for the same samples and classes, "
        f"but got {tuple(initial.shape)} and {tuple(final.shape)}.",
    )
