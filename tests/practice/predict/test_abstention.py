"""The rule for abstaining, worked out by hand."""

import json
import math

import pytest
import torch

from unspur.errors import UnspurError
from unspur.practice.predict.abstention import (
    Judged,
    calibration_of,
    calibration_of_json,
    fit_temperatures,
    require_coverage,
    scored,
    threshold_of,
)


def logits(*probabilities):
    """Logits of two classes whose first has these probabilities."""
    return torch.tensor([[math.log(p / (1 - p)), 0.0] for p in probabilities])


def judged(*probabilities, y=0, before=None, decides=None, images="as they are"):
    earlier = None if before is None else logits(*before)
    scores = scored(logits(*probabilities), earlier, (1.0, 1.0))
    decides = None if decides is None else torch.tensor(decides)
    return Judged(images, scores, torch.full((len(probabilities),), y), decides)


def test_confidence_is_the_probability_of_the_label_by_both_models():
    scores = scored(logits(0.9, 0.2), logits(0.5, 0.75), (1.0, 1.0))
    assert scores.label.tolist() == [0, 1] and scores.other.tolist() == [0, 0]
    assert scores.confidence.tolist() == pytest.approx([0.9 * 0.5, 0.8 * 0.25])


def test_a_temperature_divides_the_logits_of_its_own_model():
    # logit log 9 over 2 is log 3: probability 3/4; the other model's stays 1/2
    scores = scored(logits(0.9), logits(0.5), (2.0, 1.0))
    assert float(scores.probability[0, 0]) == pytest.approx(0.75)
    assert float(scores.confidence) == pytest.approx(0.375)


def test_the_threshold_answers_the_share_that_was_asked_for():
    one = judged(0.9, 0.8, 0.7, 0.6)
    assert threshold_of([one], 0.5) == pytest.approx(0.8)
    assert one.expected(threshold_of([one], 0.5))["coverage"] == 0.5


def test_the_threshold_comes_from_all_images_that_are_given():
    # of 0.9, 0.8, 0.7, 0.6 alone three quarters lie above 0.7; with four at 0.55 six of eight lie above 0.55
    both = [judged(0.9, 0.8, 0.7, 0.6), judged(0.55, 0.56, 0.57, 0.58, images="swapped")]
    assert threshold_of(both[:1], 0.75) == pytest.approx(0.7)
    assert threshold_of(both, 0.75) == pytest.approx(0.57)


def test_what_other_rules_abstain_on_is_never_answered_and_the_threshold_falls_instead():
    # the surest is decided by the cue and the next disputed: two are left, so that half is all that can be answered
    one = judged(0.9, 0.8, 0.7, 0.6, before=(0.9, 0.1, 0.9, 0.9), decides=[True, False, False, False])
    assert threshold_of([one], 0.5) == pytest.approx(0.6 * 0.9)
    assert threshold_of([one], 0.75) == 0  # not -1, at which everything would be answered
    assert one.expected(0.0)["coverage"] == 0.5


def test_expected_errors_are_of_answers_alone():
    # labels all 0: 0.9 and 0.6 are right, 0.2 (sure of the other class, 0.8) and 0.45 (0.55) are wrong
    found = judged(0.9, 0.6, 0.2, 0.45).expected(0.58)
    assert (found["coverage"], found["error"], found["error_answering_all"]) == (0.75, 0.3333, 0.5)
    low, high = found["ci95"]
    assert low < 1 / 3 < high
    assert judged(0.9).expected(0.95) | {"images": ""} == {
        "images": "", "n": 1, "coverage": 0.0, "error": None, "ci95": None, "error_answering_all": 0.0
    }  # fmt: skip


def test_calibration_errors_before_and_after_are_of_the_result():
    # ten answers at 0.9, of which seven are right: error 0.2 before; the best temperature makes it 0.7 exactly
    after, y = logits(*[0.9] * 10), torch.tensor([0] * 7 + [1] * 3)
    fitted = fit_temperatures(after, None, y)
    assert fitted.ece_before == pytest.approx(0.2) and fitted.ece_after == pytest.approx(0, abs=1e-5)
    assert fitted.temperatures == [pytest.approx(math.log(9) / math.log(7 / 3), rel=1e-4)]


def test_a_stored_calibration_has_a_threshold_for_each_coverage():
    one = judged(*[0.5 + number / 250 for number in range(1, 101)])
    fitted = fit_temperatures(logits(0.9, 0.8), None, torch.tensor([0, 0]))
    stored = calibration_of([one], [one], fitted, None)
    again = calibration_of_json(json.loads(json.dumps(stored.stored)), "here")
    for coverage in (0.01, 0.3, 0.9, 1.0):
        assert again.threshold(coverage) == pytest.approx(threshold_of([one], coverage))
        assert again.expected(coverage)[0]["coverage"] == coverage
    assert again.expected(0.505)[0]["coverage"] == 0.51  # the next that is stored


def test_a_small_validation_set_still_has_a_calibration():
    one = judged(0.9, 0.6, 0.7)
    stored = calibration_of([one], [one], fit_temperatures(logits(0.9), None, torch.tensor([0])), None)
    assert stored.expected(0.99)[0]["coverage"] == 1.0 and stored.expected(0.05)[0]["coverage"] == 0.3333


@pytest.mark.parametrize("coverage", [0, 2, -0.5, float("nan")])
def test_a_coverage_that_is_no_share_is_refused(coverage):
    with pytest.raises(UnspurError, match="--coverage is a share above 0 and up to 1"):
        require_coverage(coverage)


WHOLE = {"ece_before": 0.1, "ece_after": 0.1, "n": 1, "two_models": False, "cue": None, "expected": []}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([], "the whole must be an object"),
        ({}, "temperatures is missing"),
        ({**WHOLE, "thresholds": [1], "temperatures": ["hot"]}, r"temperatures\[0\] must be a number but is 'hot'"),
        ({**WHOLE, "thresholds": [1], "temperatures": [1]}, "holds no abstention rule"),
    ],
)
def test_a_damaged_calibration_names_its_file_and_field(value, sentence):
    with pytest.raises(UnspurError, match=rf"abstention\.json.*{sentence}"):
        calibration_of_json(value, "abstention.json")
