"""Temperatures and calibration errors, against answers worked out by hand."""

import math

import pytest
import torch

from unspur.errors import UnspurError
from unspur.metrics.calibration import HIGHEST, calibration_error, temperature_for


def test_the_temperature_of_a_model_that_is_too_sure_is_the_one_that_matches_its_accuracy():
    # every logit gap is 4, and 90 % are right: 4 / T = log(0.9 / 0.1)
    logits = torch.tensor([[4.0, 0.0]] * 100)
    y = torch.tensor([0] * 90 + [1] * 10)
    assert temperature_for(logits, y) == pytest.approx(4 / math.log(9), rel=1e-4)


def test_a_model_without_an_error_is_not_made_surer():
    assert temperature_for(torch.eye(2), torch.tensor([0, 1])) == 1  # any sharper one would be likelier


def test_a_model_at_chance_is_made_as_unsure_as_bounds_allow():
    chance = torch.tensor([[3.0, 0.0]] * 2)  # half right: flat is best
    assert temperature_for(chance, torch.tensor([0, 1])) == pytest.approx(HIGHEST, rel=1e-3)


def test_the_calibration_error_weighs_bins_by_their_samples():
    # a bin of three at 0.95 with two right (gap 0.2833), a bin of one at 0.55 that is wrong (gap 0.55)
    probability, correct = torch.tensor([0.95, 0.95, 0.95, 0.55]), torch.tensor([True, True, False, False])
    assert calibration_error(probability, correct) == pytest.approx(0.75 * (0.95 - 2 / 3) + 0.25 * 0.55, abs=1e-6)


def test_a_probability_of_one_lies_in_the_last_bin():
    assert calibration_error(torch.ones(4), torch.ones(4, dtype=torch.bool)) == 0


def test_no_samples_are_one_sentence():
    with pytest.raises(UnspurError, match="there are none"):
        calibration_error(torch.zeros(0), torch.zeros(0, dtype=torch.bool))
    with pytest.raises(UnspurError, match="there are none"):
        temperature_for(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
