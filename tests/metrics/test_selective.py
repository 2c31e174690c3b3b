import numpy as np
import pytest
import torch
from scipy.special import softmax

from unspur.errors import UnspurError
from unspur.metrics.selective import (
    COVERAGES,
    answers,
    at_coverages,
    aurc,
    hard_agreement,
    product_response,
    risk_coverage,
    selective,
    selective_by_group,
    softmax_response,
    threshold_for,
)


def logits(seed, n=40, classes=4):
    return 3 * torch.randn(n, classes, generator=torch.Generator().manual_seed(seed))


def tied(n=60, seed=0):
    """Confidences with many ties, and whether each prediction is right: more often, the higher the confidence."""
    generator = torch.Generator().manual_seed(seed)
    confidence = torch.randint(1, 10, (n,), generator=generator) / 10
    return confidence, torch.rand(n, generator=generator) < confidence


def test_softmax_response_equals_scipys():
    p = softmax(logits(0).double().numpy(), axis=1)
    scores = softmax_response(logits(0))
    np.testing.assert_array_equal(scores.pred.numpy(), p.argmax(1))
    np.testing.assert_allclose(scores.confidence.numpy(), p.max(1), atol=1e-12)


def test_product_equals_that_of_scipys_probabilities():
    product = softmax(logits(0).double().numpy(), axis=1) * softmax(logits(1).double().numpy(), axis=1)
    scores = product_response(logits(0), logits(1))
    np.testing.assert_array_equal(scores.pred.numpy(), product.argmax(1))
    np.testing.assert_allclose(scores.confidence.numpy(), product.max(1), atol=1e-12)


def test_probabilities_pass_through_one_softmax():
    # 0.9 * 0.9 = 0.81; through a second softmax, (e^0.9 / (e^0.9 + e^0.1))^2 = 0.48
    p = torch.tensor([[0.9, 0.1]], dtype=torch.float64)
    assert float(product_response(p.log(), p.log()).confidence) == pytest.approx(0.81)
    assert float(softmax_response(p.log()).confidence) == pytest.approx(0.9)


def test_one_softmax_ranks_samples_otherwise_than_two():
    # once: 0.999 * 0.5 = 0.4995 < 0.707 * 0.707 = 0.4998;
    # twice, where p becomes 1 / (1 + e^(1 - 2p)): 0.7309 * 0.5 = 0.3654 > 0.6020 * 0.6020 = 0.3625
    initial = torch.tensor([[0.999, 0.001], [0.707, 0.293]], dtype=torch.float64)
    final = torch.tensor([[0.5, 0.5], [0.707, 0.293]], dtype=torch.float64)
    unsure, sure = product_response(initial.log(), final.log()).confidence
    assert unsure < sure
    twice = (initial.softmax(1) * final.softmax(1)).max(1).values
    assert twice[0] > twice[1]


def test_models_sure_of_different_classes_have_little_confidence():
    a, b = torch.tensor([[0.99, 0.01]]).log(), torch.tensor([[0.01, 0.99]]).log()
    assert float(product_response(a, b).confidence) == pytest.approx(0.0099, abs=1e-6)  # not normalised to 0.5


def test_the_product_may_answer_a_class_that_neither_model_puts_first():
    a, b = torch.tensor([[0.5, 0.4, 0.1]]).log(), torch.tensor([[0.1, 0.4, 0.5]]).log()
    scores = product_response(a, b)  # 0.05, 0.16, 0.05
    assert scores.pred.tolist() == [1] and float(scores.confidence) == pytest.approx(0.16)


def test_hard_agreement_answers_where_both_models_say_the_same():
    scores = hard_agreement(logits(0), logits(1))
    for i, given in enumerate(answers(scores.confidence, 1).tolist()):
        a, b = int(np.argmax(logits(0)[i].numpy())), int(np.argmax(logits(1)[i].numpy()))
        assert given == (a == b) and int(scores.pred[i]) == b


def test_logits_of_different_samples_are_refused():
    for pair in (product_response, hard_agreement):
        with pytest.raises(UnspurError, match=r"\(40, 4\) and \(1, 4\)"):
            pair(logits(0), logits(0, n=1))


@pytest.mark.parametrize("coverage", [*COVERAGES, 0.5, 0.07, 1 / 3])
@pytest.mark.parametrize("n", [60, 100, 137])
def test_a_threshold_answers_the_fewest_that_reach_the_coverage(coverage, n):
    for confidence in (tied(n)[0], torch.rand(n, generator=torch.Generator().manual_seed(n))):
        got = int(answers(confidence, threshold_for(confidence, coverage)).sum())
        reachable = [sum(c >= t for c in confidence.tolist()) for t in set(confidence.tolist())]
        assert got == min(k for k in reachable if k / n >= coverage - 1e-9)


def test_without_ties_the_coverage_is_met_exactly():
    confidence = torch.randperm(100, generator=torch.Generator().manual_seed(0)) / 100
    for coverage in (1.0, 0.95, 0.9, 0.85, 0.8, 0.29, 0.07):  # 0.29 * 100 and 0.07 * 100 are not whole in binary
        assert int(answers(confidence, threshold_for(confidence, coverage)).sum()) == round(100 * coverage)


def test_samples_of_equal_confidence_are_answered_together():
    # 3 of 6 asked for, but the third to fifth are equal: 5 are answered, since 2 would be too few
    confidence = torch.tensor([0.9, 0.8, 0.5, 0.5, 0.5, 0.1])
    threshold = threshold_for(confidence, 0.5)
    assert threshold == 0.5 and int(answers(confidence, threshold).sum()) == 5


@pytest.mark.parametrize("coverage", [0, -0.1, 1.01, float("nan")])
def test_a_coverage_outside_0_to_1_is_refused(coverage):
    with pytest.raises(UnspurError, match="above 0 and up to 1"):
        threshold_for(torch.ones(100), coverage)


@pytest.mark.parametrize(("coverage", "need"), [(0.95, 20), (0.9, 10), (0.99, 100), (0.05, 20), (1.0, 1)])
def test_a_validation_set_too_small_for_the_coverage_is_refused(coverage, need):
    # at 0.95 one sample in 20 is left out: 19 samples cannot show that
    threshold_for(torch.ones(need), coverage)
    with pytest.raises(UnspurError, match=f"has {need - 1} samples and needs at least {need}"):
        threshold_for(torch.ones(need - 1), coverage)


def test_confidences_that_are_not_numbers_are_refused():
    with pytest.raises(UnspurError, match="not numbers"):
        threshold_for(torch.tensor([0.5, float("nan")]), 0.5)


def test_coverages_on_test_data_use_thresholds_from_validation_data():
    # validation 0.01 ... 1.00: 90 % are at least 0.11. Of the test's 0.05, 0.11, 0.5, 0.9 three are, one of them wrong.
    # A threshold from the test data would be 0.05 and answer all.
    validation = torch.arange(1, 101) / 100
    test, correct = torch.tensor([0.05, 0.11, 0.5, 0.9]), torch.tensor([False, False, True, True])
    result = at_coverages(test, correct, validation, (1.0, 0.9))
    assert result[0.9] == (4, 3, 0.75, pytest.approx(1 / 3))
    assert result[1.0] == (4, 4, 1.0, 0.5)
    assert list(at_coverages(test, correct, validation)) == [1.0, 0.95, 0.9, 0.85, 0.8]


def test_error_is_a_share_of_the_answers_not_of_the_samples():
    # 2 of 4 answered, 1 of them wrong: 1/2, not 1/4; the wrong one that was not answered does not count
    given, correct = torch.tensor([True, True, False, False]), torch.tensor([True, False, False, True])
    assert selective(given, correct) == (4, 2, 0.5, 0.5)


def test_an_error_without_answers_is_unknown_and_a_coverage_without_samples_refused():
    assert selective(torch.tensor([False]), torch.tensor([True])) == (1, 0, 0.0, None)
    with pytest.raises(UnspurError, match="there are none"):
        selective(torch.zeros(0, dtype=torch.bool), torch.zeros(0, dtype=torch.bool))


def test_a_group_that_is_never_answered_does_not_hide_in_the_mean():
    # 8 of 10 answered without error; the second group gets no answer at all
    group = torch.tensor([0] * 8 + [5] * 2)
    result = selective_by_group(group == 0, group == 0, group)
    assert selective(group == 0, group == 0) == (10, 8, 0.8, 0.0)
    assert result == {0: (8, 8, 1.0, 0.0), 5: (2, 0, 0.0, None)}


def test_groups_equal_a_loop():
    confidence, correct = tied()
    group = torch.arange(60) % 7
    given = answers(confidence, 0.5)
    for g, part in selective_by_group(given, correct, group).items():
        rows = [i for i in range(60) if group[i] == g]
        said = [i for i in rows if given[i]]
        assert part[:3] == (len(rows), len(said), len(said) / len(rows))
        assert part.error == pytest.approx(sum(not correct[i] for i in said) / len(said))


@pytest.mark.parametrize("seed", range(3))
def test_the_curve_has_the_coverage_and_risk_of_every_threshold(seed):
    confidence, correct = tied(seed=seed)
    curve = risk_coverage(confidence, correct)
    assert curve.threshold.tolist() == sorted(set(confidence.tolist()), reverse=True)
    for threshold, coverage, risk in zip(*curve, strict=True):
        point = selective(confidence >= threshold, correct)
        assert (float(coverage), float(risk)) == pytest.approx((point.coverage, point.error))


@pytest.mark.parametrize("seed", range(3))
def test_aurc_equals_its_definition(seed):
    confidence, correct = tied(seed=seed)
    risks = []
    for threshold in confidence.tolist():
        rows = [i for i, c in enumerate(confidence.tolist()) if c >= threshold]
        risks.append(sum(not correct[i] for i in rows) / len(rows))
    assert aurc(confidence, correct) == pytest.approx(sum(risks) / len(risks))


def test_aurc_does_not_depend_on_the_order_of_ties():
    confidence, correct = tied()
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    assert aurc(confidence[order], correct[order]) == pytest.approx(aurc(confidence, correct), abs=1e-12)


def test_aurc_rewards_confidence_that_tells_right_from_wrong():
    # wrong last: risks 0, 0, 0, 1/4; wrong first: 1, 1/2, 1/3, 1/4
    confidence, wrong_last = torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([True, True, True, False])
    assert aurc(confidence, wrong_last) == pytest.approx(1 / 16)
    assert aurc(confidence, wrong_last.flip(0)) == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_a_curve_without_samples_is_refused():
    with pytest.raises(UnspurError, match="needs samples"):
        aurc(torch.zeros(0), torch.zeros(0, dtype=torch.bool))


def test_coverages_that_few_validation_samples_cannot_tell_are_left_out_of_the_table():
    confidence, correct = torch.linspace(0, 1, 15), torch.ones(15, dtype=torch.bool)
    # 15 samples: 0.95 needs 20, 0.9 needs 10
    assert list(at_coverages(confidence, correct, confidence)) == [1.0, 0.9, 0.85, 0.8]
    with pytest.raises(UnspurError, match=r"too small for coverage 0\.95: it has 15 samples and needs at least 20"):
        threshold_for(confidence, 0.95)
