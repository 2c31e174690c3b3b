from dataclasses import replace

import pytest
import torch
from torch import nn

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.data.base import Batch, Split
from unspur.errors import Diverged, UnspurError
from unspur.methods import xrm
from unspur.methods.erm import ERM
from unspur.methods.xrm import XRM
from unspur.parts import twins
from unspur.parts.mining import Mined, mining_quality, wrong
from unspur.parts.pairs import Pair
from unspur.parts.twins import Found, Relabelled, class_balanced, train_twins
from unspur.train.moments import Minimised, Moment
from unspur.train.recipe import SGD
from unspur.train.session import Session

QUICK = XRM(training=PLAIN, twins=SGD(epochs=6, batch_size=64), rates=(0.01,))


def moment(labels, index, logits):
    batch = Batch(torch.zeros(len(index), 1), labels.original[index], index)
    found = Minimised(torch.zeros(()), logits, for_carry={"held_out": logits})
    return Moment(nn.Identity(), "", 0, 0, None, batch, found)


def test_a_twin_that_is_certain_changes_a_label_for_good_and_one_that_knows_nothing_never_does():
    labels = Relabelled(torch.tensor([0, 1, 2]), torch.device("cpu"))
    labels.see(moment(labels, torch.tensor([0, 1]), torch.tensor([[0.0, 0.0, 100.0], [1.0, 1.0, 1.0]])))
    assert labels.y.tolist() == [2, 1, 2] and labels.flipped() == pytest.approx(1 / 3)
    labels.see(moment(labels, torch.tensor([0]), torch.tensor([[1.0, 1.0, 1.0]])))
    assert labels.y.tolist() == [2, 1, 2]  # it stays, and does not go back to 0


def test_a_label_changes_with_the_chance_of_the_paper():
    # two classes, p = 0.75: (0.75 - 1/2) x 2 = 0.5, and not 0.75
    torch.manual_seed(0)
    labels = Relabelled(torch.zeros(2000, dtype=torch.long), torch.device("cpu"))
    labels.see(moment(labels, torch.arange(2000), torch.tensor([[0.25, 0.75]]).log().expand(2000, 2)))
    assert labels.flipped() == pytest.approx(0.5, abs=0.04)


def test_the_loss_is_the_sum_over_classes_of_current_labels_written_as_a_loop():
    logits, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 0, 0, 0, 2, 2])
    by_class = [torch.stack([-logits[i].log_softmax(0)[k] for i in range(6) if y[i] == k]).mean() for k in (0, 2)]
    assert torch.isclose(class_balanced(logits, y), by_class[0] + by_class[1])


def test_each_twin_learns_from_its_own_half_and_the_current_labels(monkeypatch):
    data, found = Split(torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 0, 1])), {}
    pair, coin = Pair(nn.Linear(3, 2), nn.Linear(3, 2)), torch.tensor([True, True, False, False, True, False])
    monkeypatch.setattr(
        twins,
        "train_model",
        lambda *given, objective, carry, **rest: found.update(objective=objective, labels=carry[0]),
    )
    train_twins(pair, data, None, coin, SGD(), "twins", Session())
    current = torch.tensor([1, 1, 0, 1, 0, 1])  # one has changed, so that classes of 3 and 3 are now of 2 and 4
    found["labels"].y = current
    batch = data.batch(torch.arange(6))
    result = found["objective"](pair.train(), batch, 0)
    own = class_balanced(torch.where(coin[:, None], pair.kept(batch.x), pair.helper(batch.x)), current)
    assert torch.isclose(result.loss, own)
    slope = torch.autograd.grad(result.loss, pair.kept.weight)[0]
    alone = torch.where(coin[:, None], pair.kept(batch.x), pair.helper(batch.x).detach())
    assert torch.allclose(slope, torch.autograd.grad(class_balanced(alone, current), pair.kept.weight)[0])
    # what relabels a sample is the twin that does not learn from it
    assert torch.equal(result.for_carry["held_out"][0], pair.helper(batch.x)[0])
    assert torch.equal(result.for_carry["held_out"][2], pair.kept(batch.x)[2])


def test_a_sample_is_mined_if_either_twin_is_wrong_about_its_original_label():
    data, pair = shortcut(), Pair(network(), network())
    found = train_twins(pair, data, shortcut(100, 5, seed=4), torch.rand(600) < 0.5, PLAIN, "twins", Session())
    mistakes = [wrong(twin, data, Session()) for twin in pair.networks]
    assert torch.equal(found.mined.train, mistakes[0] | mistakes[1]) and len(found.mined.val) == 100


def test_the_rate_with_most_changed_labels_counts_among_those_with_two_environments_in_every_class(monkeypatch):
    mined, known = Mined(torch.arange(600) < 50, None, shortcut().y), {0.1: (0.4, 1), 0.01: (0.2, 0), 0.001: (0.1, 0)}
    monkeypatch.setattr(xrm, "train_twins", lambda *given: Found(given[4].lr, mined, *known[given[4].lr]))
    fit = replace(QUICK, rates=(0.1, 0.01, 0.001), training=SGD(epochs=0)).fit(network(), shortcut())
    assert fit.facts["rate"] == 0.01 and fit.facts["flipped"] == 0.2


def test_a_rate_at_which_the_twins_diverge_is_not_chosen_from_and_named():
    fit = replace(QUICK, rates=(0.01, 1e6), training=SGD(epochs=0)).fit(network(), shortcut())
    assert fit.facts["rate"] == 0.01
    assert "At rate 1e+06 the twins diverged, so that it was not chosen from." in fit.warnings
    with pytest.raises(Diverged):
        replace(QUICK, rates=(1e6,)).fit(network(), shortcut())


@pytest.mark.parametrize("empty_in", ["train", "val"])
def test_a_class_with_one_environment_alone_is_counted_in_training_and_in_validation_data(monkeypatch, empty_in):
    data, val = shortcut(), shortcut(100, 5, seed=4)
    both = {len(data): data.y.new_zeros(len(data)).bool(), len(val): val.y.new_zeros(len(val)).bool()}
    for split, name in ((data, "train"), (val, "val")):
        for label in (0, 1):  # one mistake in each class, but for class 1 of one of the splits
            first = int((split.y == label).nonzero()[0])
            both[len(split)][first] = not (name == empty_in and label == 1)
    monkeypatch.setattr(twins, "train_model", lambda *given, **rest: None)
    monkeypatch.setattr(twins, "wrong", lambda twin, split, session: both[len(split)])
    found = train_twins(Pair(network(), network()), data, val, torch.rand(600) < 0.5, PLAIN, "twins", Session())
    assert found.empty == 1 and found.rank < (True, 0.0)


def test_the_twins_are_trained_by_their_whole_recipe_with_no_early_stop(monkeypatch):
    recipes = []
    monkeypatch.setattr(twins, "train_model", lambda pair, train, recipe, **rest: recipes.append(recipe))
    monkeypatch.setattr(twins, "wrong", lambda twin, split, session: torch.arange(len(split)) < 50)
    replace(QUICK, training=SGD(epochs=0)).fit(network(), shortcut())
    assert recipes == [replace(QUICK.twins, lr=0.01)]
    for early in ({"until_accuracy": 0.9}, {"until_loss": 0.1}):
        with pytest.raises(UnspurError, match=r"train to the end of their epochs.* leave twins.until_accuracy"):
            XRM(twins=SGD(**early))


def test_conflicting_samples_are_found_and_classified_better_than_by_plain_training():
    data, val = shortcut(), shortcut(200, 10, seed=5)
    plain, fit = ERM(erm=PLAIN).fit(network(), data), QUICK.fit(network(), data, val=val)
    assert misled(fit) > misled(plain) + 0.2
    quality = mining_quality(fit.mining.train.nonzero().squeeze(1), data)
    assert quality["recall"] > 0.8 and quality["precision"] > 0.5
    assert fit.facts["worst_inferred_group"] is not None


def test_settings_that_are_no_rates_are_refused():
    with pytest.raises(UnspurError, match=r"rates must be numbers above 0 but got \[0\]"):
        XRM(rates=(0,))
    with pytest.raises(UnspurError, match=r"twins\.epochs must be at least 1 but got 0"):
        XRM(twins=SGD(epochs=0))
