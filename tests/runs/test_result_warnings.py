"""A result that tells classes apart badly says so."""

from dataclasses import replace

import pytest
import torch

from unspur.core.progress import silent
from unspur.data.base import Dataset, Split
from unspur.evaluation.scores import Predictions
from unspur.runs.result_warnings import lopsided_warnings, nothing_learned_warnings, one_class_warnings


def test_predicting_one_class_is_said_once_for_all_test_sets_that_it_holds_for():
    tests = {"a": {"only_class": 1}, "b": {"only_class": 1}, "c": {"only_class": None}}
    assert one_class_warnings(tests, ("cat", "dog")) == [
        "The model predicts the class 'dog' for every image of test 'a' and 'b': it tells no classes apart there."
    ]


class Constant(torch.nn.Module):
    """Predicts class 1, but for samples whose label it is told to see."""

    def __init__(self, other=None):
        super().__init__()
        self.bias, self.other = torch.nn.Parameter(torch.tensor([0.0, 1.0])), other

    def forward(self, x):
        logits = self.bias.expand(len(x), 2).clone()
        if self.other is not None:
            logits[x[:, 0] == self.other, 0] = 2.0
        return logits


def test_a_network_that_learned_nothing_is_said_to_have():
    train = Split(torch.arange(600.0).reshape(-1, 1), torch.arange(600) % 2)
    data = Dataset("numbers", train, train.subset(torch.arange(0)), {}, ("even", "odd"))
    (sentence,) = nothing_learned_warnings(Constant(), data, silent)
    assert sentence.startswith("The training ended with a network that predicts the class 'odd' for every training")
    assert not nothing_learned_warnings(Constant(other=599.0), data, silent)  # one sample of 600 is enough
    of_one_class = replace(data, train=train.subset(torch.arange(1, 600, 2)))
    assert not nothing_learned_warnings(Constant(), of_one_class, silent)  # which is right


class Shown(torch.nn.Module):
    """Predicts the class that the sample names."""

    def forward(self, x):
        return torch.nn.functional.one_hot(x[:, 0].long(), 2).float()


@pytest.mark.parametrize(("wrong", "images", "said"), [(26, 100, True), (24, 100, False), (12, 40, False)])
def test_many_more_predictions_of_a_class_than_are_of_it_are_said(wrong, images, said):
    y = torch.arange(images) % 2
    named = y.clone()
    named[(y == 0).nonzero().squeeze(1)[:wrong]] = 1  # of the evens: 50 + 26 of 100 are then taken for odd
    val = Split(named.float().reshape(-1, 1), y)
    data = Dataset("numbers", val, val, {}, ("even", "odd"))
    sentences = lopsided_warnings(Predictions(Shown()), data)
    assert sentences == (
        [
            "The model predicts the class 'odd' for 76 % of the validation images, of which 50 % are: "
            "it errs towards that class."
        ]
        if said
        else []
    )


def test_errors_in_both_directions_are_not_lopsided():
    y = torch.arange(100) % 2
    val = Split((1 - y).float().reshape(-1, 1), y)
    assert lopsided_warnings(Predictions(Shown()), Dataset("numbers", val, val, {}, ("even", "odd"))) == []
