from dataclasses import replace

import pytest
import torch

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.errors import UnspurError
from unspur.methods import afr
from unspur.methods.afr import AFR, weights
from unspur.methods.base import Fit
from unspur.runs.config import configure

QUICK = AFR(erm=replace(PLAIN, epochs=6), gammas=(4.0, 12.0), lams=(0.0, 0.1))


def test_weights_are_eq_4_written_as_a_loop():
    logits, y = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), torch.tensor([0, 0, 1])
    raw = []
    for row, label in zip(logits, y, strict=True):
        p = row.exp()[label] / row.exp().sum()
        raw.append(torch.exp(-3.0 * p) / (2 if label == 0 else 1))
    assert torch.allclose(weights(logits, y, 3.0), torch.stack(raw) / sum(raw))


def test_without_gamma_every_class_weighs_the_same():
    found = weights(torch.randn(10, 2), torch.tensor([0] * 8 + [1] * 2), 0.0)
    assert float(found[:8].sum()) == pytest.approx(0.5) and float(found[8]) == pytest.approx(0.25)


def test_the_network_does_not_see_what_the_last_layer_is_fitted_on(monkeypatch):
    data, given = shortcut(), {}
    train, features = afr.train_model, afr.features_of

    def places(split):
        return (split.x[:, None] == data.x).all(2).nonzero()[:, 1].tolist()  # no two samples are the same

    def trained(model, split, *args, **rest):
        given["erm"] = places(split)
        return train(model, split, *args, **rest)

    def computed(model, split, session, stage):
        given[stage] = places(split)
        return features(model, split, session, stage)

    monkeypatch.setattr(afr, "train_model", trained)
    monkeypatch.setattr(afr, "features_of", computed)
    QUICK.fit(network(), data, val=shortcut(200, seed=5))
    seen, held = given["erm"], given["held-features"]
    assert len(seen) == 480 and len(held) == 120
    assert not set(seen) & set(held) and sorted(seen + held) == list(range(600))


def test_conflicting_samples_are_classified_better_than_by_the_network_it_began_as():
    data = shortcut(2000, conflicting=100)
    fit = QUICK.fit(network(), data, val=shortcut(1000, conflicting=60, seed=5).without_attributes())
    before = misled(Fit(fit.stages["erm"]))
    assert misled(fit) > before + 0.2
    assert fit.facts["chosen"]["gamma"] in (4.0, 12.0)


def test_a_strong_pull_leaves_the_last_layer_of_the_network_that_it_began_as():
    fit = replace(QUICK, gammas=(4.0,), lams=(1e6,)).fit(network(), shortcut())
    before, after = fit.stages["erm"].state_dict(), fit.model.state_dict()
    assert all(torch.allclose(before[name].double(), after[name].double(), atol=1e-4) for name in before)


def test_several_settings_need_validation_data_to_choose_on():
    with pytest.raises(UnspurError, match="no validation data to choose on; hold some out, or name one setting only"):
        QUICK.fit(network(), shortcut())
    with pytest.raises(UnspurError, match=r"held must lie in \(0, 1\) but got 1"):
        AFR(held=1.0)
    with pytest.raises(UnspurError, match="steps must be at least 1 but got -5"):
        AFR(steps=-5)


@pytest.mark.parametrize("rule", ["worst_group", "mined_group"])
def test_the_pair_is_chosen_that_is_best_by_the_rule_when_each_is_fitted_alone(rule):
    method = replace(QUICK, gammas=(0.0, 12.0), lams=(1e6, 0.1), rule=rule)  # 1e6: the network's own last layer
    data, val = shortcut(2000, conflicting=100), shortcut(1000, conflicting=200, seed=5)
    scores = {}
    for gamma in method.gammas:
        for lam in method.lams:
            fit = replace(method, gammas=(gamma,), lams=(lam,)).fit(network(), data, val=val)
            scores[gamma, lam] = fit.facts["chosen"]["score"]
    fit = method.fit(network(), data, val=val)
    chosen = fit.facts["chosen"]
    assert scores[chosen["gamma"], chosen["lam"]] == max(scores.values()) == pytest.approx(chosen["score"])
    assert min(scores.values()) < max(scores.values()) - 0.1  # or any choice would do
    before = fit.stages["erm"](val.x).argmax(1) == val.y
    group = val.attributes["told"] * 2 + val.y if rule == "worst_group" else (~before).long()
    right = (fit.model(val.x).argmax(1) == val.y).double()
    places = [(group == g) & (val.y == y) for g in group.unique() for y in (0, 1)]
    shares = [float(right[place].mean()) for place in places if place.any()]
    expected = min(shares) if rule == "worst_group" else sum(shares) / len(shares)
    assert chosen["score"] == pytest.approx(expected, abs=1e-6)


def test_a_rule_of_copies_that_it_does_not_make_is_refused():
    with pytest.raises(UnspurError, match="swapped"):
        configure("afr", "biased_mnist", None, 0, ["rule=swapped"])
