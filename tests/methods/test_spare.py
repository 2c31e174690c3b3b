from dataclasses import replace

import pytest
import torch

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.errors import UnspurError
from unspur.methods import spare
from unspur.methods.erm import ERM
from unspur.methods.spare import SPARE
from unspur.parts.clusters import Clusters
from unspur.parts.mining import mining_quality
from unspur.train.recipe import SGD

QUICK = SPARE(erm=SGD(lr=0.05, epochs=2, batch_size=64), training=PLAIN)


def drawn(monkeypatch, method, data):
    """The share of each sample in the second training."""
    orders, real = [], spare.train_model

    def train_model(*given, **rest):
        orders.append(rest["order"]) if "order" in rest else real(*given, **rest)

    monkeypatch.setattr(spare, "train_model", train_model)
    fit = method.fit(network(), data)
    until = orders[0].until
    return torch.cat([until[:1], until.diff()]), fit


def test_samples_are_drawn_by_their_clusters_size_and_the_power_is_two_where_clusters_are_not_apart(monkeypatch):
    data = shortcut(8, conflicting=0)
    y = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    known = iter([Clusters(torch.tensor([0, 0, 0, 1]), 0.95), Clusters(torch.tensor([0, 1, 1, 1]), 0.85)])
    monkeypatch.setattr(spare, "best_clusters", lambda *given: next(known))
    share, fit = drawn(monkeypatch, QUICK, replace(data, y=y))
    # class 0, power 1: 1/3, 1/3, 1/3, 1 of 2; class 1, power 2: 1, 1/9, 1/9, 1/9 of 4/3
    expected = [1 / 6, 1 / 6, 1 / 6, 1 / 2, 3 / 4, 1 / 12, 1 / 12, 1 / 12]
    assert torch.allclose(share, torch.tensor(expected).double())
    assert fit.mining.train.tolist() == [False, False, False, True, True, False, False, False]


def test_clusters_are_of_one_class_and_of_the_brief_models_probabilities(monkeypatch):
    data, seen = shortcut(), []
    real = spare.best_clusters
    monkeypatch.setattr(spare, "best_clusters", lambda x, *rest: seen.append(x) or real(x, *rest))
    share, fit = drawn(monkeypatch, QUICK, data)
    with torch.no_grad():
        chances = fit.stages["erm"].eval()(data.x).softmax(1)
    for label, x in enumerate(seen):
        assert torch.allclose(x.float(), chances[data.y == label], atol=1e-5)
        assert float(share[data.y == label].sum()) == pytest.approx(1.0)  # classes are drawn alike often


def test_the_second_training_begins_with_the_initial_weights():
    still = replace(QUICK, training=SGD(epochs=0)).fit(network(), shortcut())
    for value, first in zip(still.model.state_dict().values(), network().state_dict().values(), strict=True):
        assert torch.equal(value, first)


def test_conflicting_samples_are_found_and_classified_better_than_by_plain_training():
    data = shortcut()
    plain, fit = ERM(erm=PLAIN).fit(network(), data), QUICK.fit(network(), data)
    assert misled(fit) > misled(plain) + 0.2
    assert mining_quality(fit.mining.train.nonzero().squeeze(1), data)["recall"] > 0.8


def test_it_is_told_where_no_class_is_split_and_only_there(monkeypatch):
    whole, split = Clusters(torch.zeros(4, dtype=torch.long), 0.0), Clusters(torch.tensor([0, 0, 0, 1]), 0.95)
    data = replace(shortcut(8, conflicting=0), y=torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]))
    for known, told in (([whole, whole], True), ([whole, split], False)):
        each = iter(known)
        monkeypatch.setattr(spare, "best_clusters", lambda *given, each=each: next(each))
        share, fit = drawn(monkeypatch, QUICK, data)
        assert (fit.warnings == [spare.UNSPLIT]) == told and bool(fit.warnings) == told
        assert not told or torch.allclose(share, torch.full((8,), 1 / 4).double())  # classes are drawn alike often


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(UnspurError, match=r"erm.epochs must be at least 1 but got 0"):
        SPARE(erm=SGD(epochs=0))
    with pytest.raises(UnspurError, match="clusters must be at least 2 but got 1"):
        SPARE(clusters=1)
    for apart in (7.0, float("nan")):
        with pytest.raises(UnspurError, match=rf"apart is a silhouette and must lie in \[-1, 1\] but got {apart}"):
            SPARE(apart=apart)
