import pytest
import torch
from torch import nn

from methods.shortcuts import PLAIN, network, shortcut
from unspur.errors import UnspurError
from unspur.methods.ee import EE
from unspur.methods.erm import ERM
from unspur.models.base import head_of, with_features
from unspur.train.loop import measure
from unspur.train.recipe import SGD
from unspur.train.session import Session


def test_nothing_but_the_last_layer_changes_and_batch_norm_neither():
    fit, first = EE(training=PLAIN).fit(network(), shortcut()), network()
    for (name, value), start in zip(fit.model.state_dict().items(), first.state_dict().values(), strict=True):
        assert torch.equal(value, start) != name.startswith("3."), name  # the head is layer 3


def test_the_last_layer_is_a_logistic_regression_of_the_features():
    # at the minimum the slope by the weights is 0: the mean over samples of (p - y) times the features
    data = shortcut(200, 40)
    fit = EE(training=SGD(lr=0.2, epochs=600, batch_size=200, weight_decay=1e-3)).fit(network(), data)
    with torch.no_grad():
        features, logits = with_features(fit.model, data.x)
    wrong = logits.softmax(1) - nn.functional.one_hot(data.y, 2)
    slope = wrong.T @ features / 200 + 1e-3 * head_of(fit.model).weight
    assert float(slope.detach().abs().max()) < 0.01


def test_good_features_are_all_that_it_needs():
    # features of a network that was trained without the shortcut's correlation
    fair = shortcut(600, 300, seed=3)
    extractor = ERM(erm=SGD(lr=0.05, epochs=8, batch_size=64)).fit(network(), fair).model
    fit = EE(training=PLAIN).fit(extractor, shortcut())
    plain = ERM(erm=PLAIN).fit(network(), shortcut())
    test = shortcut(1000, 1000, seed=2)
    assert measure(fit.model, test, Session())[0] > measure(plain.model, test, Session())[0] + 0.2


def test_a_model_that_does_not_end_in_a_linear_layer_is_refused():
    with pytest.raises(UnspurError, match="ends in one linear layer"):
        EE().fit(nn.Sequential(nn.Linear(7, 4), nn.ReLU(), nn.Linear(4, 2), nn.ReLU()), shortcut())
