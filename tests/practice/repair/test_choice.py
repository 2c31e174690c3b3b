"""Which candidate replaces the baseline."""

import math

import pytest
import torch

from unspur.practice.repair.choice import LEVEL, Scores, judge, paired

ONE = torch.zeros(100, dtype=torch.long)


def right(share, n=100):
    """The first ``share`` of n images right."""
    return (torch.arange(n) < share * n).float()


def test_a_difference_is_the_mean_over_groups():
    # group 0 has 4 images, of which 2 are gained; group 1 has one, lost: (0.5 - 1) / 2
    candidate, baseline = torch.tensor([1.0, 1, 0, 0, 0]), torch.tensor([0.0, 0, 0, 0, 1])
    found = paired(candidate, baseline, torch.tensor([0, 0, 0, 0, 1]))
    assert found.mean == pytest.approx(-0.25)


def test_images_without_a_group_do_not_count():
    candidate, baseline = torch.tensor([1.0, 0]), torch.tensor([0.0, 1])
    assert paired(candidate, baseline, torch.tensor([0, -1])).mean == 1


def test_the_error_is_that_of_paired_differences():
    # 10 of 100 gained: variance 0.1 * 0.9 * 100 / 99 over 100
    found = paired(right(0.6), right(0.5), ONE)
    assert found.error == pytest.approx(math.sqrt(0.1 * 0.9 / 99))
    assert found.low(1) == pytest.approx(0.1 - 1.645 * found.error, abs=1e-4)
    assert found.low(5) < found.low(1)  # more candidates, a wider bound


def test_few_images_prove_nothing_however_clear_they_are():
    # three gained and none lost: one in eight by chance, where a normal approximation says one in 24
    found = paired(right(0.53), right(0.5), ONE)
    assert found.p == pytest.approx(1 / 8, abs=0.01)


def test_equal_models_do_not_differ():
    assert paired(right(0.5), right(0.5), ONE) == (0.0, 0.0, 1.0)


def decide(baseline, *candidates, margin=0.01):
    found = judge(
        Scores(*baseline), [Scores(*each) for each in candidates], evidence_group=ONE, ordinary_group=ONE, margin=margin
    )
    return [each.reason for each in found]


def test_the_best_of_those_that_do_no_harm_is_chosen():
    base = (right(0.5), right(0.9))
    better, best, harmful = (right(0.7), right(0.9)), (right(0.8), right(0.9)), (right(0.95), right(0.8))
    assert decide(base, better, best, harmful) == ["better, but another is best", "chosen", "harms"]


def test_a_candidate_that_is_not_reliably_better_is_not_chosen():
    assert decide((right(0.5), right(0.9)), (right(0.53), right(0.95))) == ["not better"]
    assert decide((right(0.5), right(0.9)), (right(0.4), right(0.95))) == ["not better"]


def test_more_candidates_need_better_evidence():
    # six gained and none lost: 1 in 64, enough for one candidate and too little among five
    base, six = (right(0.5), right(0.9)), (right(0.56), right(0.9))
    assert LEVEL > 1 / 64 and decide(base, six) == ["chosen"]
    assert decide(base, *[six] * 5) == ["not better"] * 5


def test_a_loss_that_cannot_be_ruled_out_is_harm_unless_the_margin_allows_it():
    base, lossy = (right(0.5), right(0.9)), (right(0.9), right(0.88))
    # two of 100 lost: 2 points, up to 2 + 1.645 * 1.4 = 4.3
    assert decide(base, lossy) == ["harms"]
    assert decide(base, lossy, margin=0.03) == ["harms"]
    assert decide(base, lossy, margin=0.05) == ["chosen"]
