from dataclasses import replace

import pytest
import torch

from methods.shortcuts import network, shortcut
from unspur.errors import UnspurError
from unspur.methods.jtt import JTT
from unspur.parts.mining import wrong
from unspur.train.loop import measure, train
from unspur.train.recipe import SGD
from unspur.train.session import Session

QUICK = JTT(erm=SGD(lr=0.05, epochs=2, batch_size=64), training=SGD(lr=0.05, epochs=4, batch_size=64), up=20)


@pytest.fixture(scope="module")
def fit():
    return QUICK.fit(network(), shortcut(), seed=0)


def test_what_the_first_training_gets_wrong_is_mined(fit):
    # the short model itself, on the training set as it is: 30 samples conflict
    assert torch.equal(fit.mining.train, wrong(fit.stages["erm"], shortcut(), Session()))
    assert 20 <= fit.facts["mined"] <= 40


def test_the_second_training_sees_mined_samples_so_many_times_an_epoch_and_the_others_once(monkeypatch):
    orders = []
    monkeypatch.setattr(
        "unspur.methods.jtt.train_model", lambda model, train, recipe, *, order, **rest: orders.append(order)
    )
    mined = QUICK.fit(network(), shortcut(), seed=0).mining.train
    (order,) = orders
    assert torch.equal(order.times, torch.where(mined, 20, 1))


def test_the_second_training_begins_with_the_initial_weights_and_not_with_those_of_the_first():
    start = network()
    still = replace(QUICK, training=SGD(epochs=0)).fit(network(), shortcut(), seed=0)
    for value, first in zip(still.model.state_dict().values(), start.state_dict().values(), strict=True):
        assert torch.equal(value, first)


def test_samples_that_conflict_are_classified_better_than_by_the_first_training(fit):
    test = shortcut(2000, conflicting=2000, seed=2)  # the strong number always misleads
    before, after = (measure(model, test, Session())[0] for model in (fit.stages["erm"], fit.model))
    assert before < 0.3 and after > before + 0.3


def test_upweighting_by_one_is_plain_training():
    fit, plain = replace(QUICK, up=1).fit(network(), shortcut(), seed=0), network()
    train(plain, shortcut(), QUICK.training, stage="training", session=Session())
    for value, same in zip(fit.model.state_dict().values(), plain.state_dict().values(), strict=True):
        assert torch.equal(value, same)


def test_nothing_that_is_wrong_is_said():
    with pytest.raises(UnspurError, match=r"Mining found no bias-conflicting sample.*Train it less \(erm\.epochs\)\."):
        replace(QUICK, erm=SGD(lr=0.05, epochs=30, batch_size=64)).fit(network(), shortcut(conflicting=0), seed=0)


def test_a_factor_below_one_is_refused():
    with pytest.raises(UnspurError, match="up must be at least 1 but got 0"):
        JTT(up=0)
