from dataclasses import replace

import pytest
import torch

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.errors import UnspurError
from unspur.methods.base import Fit
from unspur.methods.dfr import DFR
from unspur.models.base import head_of

QUICK = DFR(erm=PLAIN, strengths=(1.0, 0.1), fits=5, steps=300)


@pytest.fixture(scope="module")
def fit():
    return QUICK.fit(network(), shortcut(), val=shortcut(400, conflicting=40, seed=5))


def test_conflicting_samples_are_classified_better_than_by_the_network_it_began_as(fit):
    before = misled(Fit(fit.stages["erm"]))
    assert before < 0.1 and misled(fit) > before + 0.5


def test_the_last_layer_alone_changes(fit):
    before, after = fit.stages["erm"].state_dict(), fit.model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"3.weight", "3.bias"}


def test_the_training_sets_groups_are_not_needed():
    val = shortcut(400, conflicting=40, seed=5)
    blind = QUICK.fit(network(), shortcut().without_attributes(), val=val).model.state_dict()
    told = QUICK.fit(network(), shortcut(), val=val).model.state_dict()
    assert all(torch.equal(blind[name], told[name]) for name in told)


def test_an_average_of_many_draws_depends_less_on_the_seed_than_one_draw():
    val = shortcut(400, conflicting=40, seed=5)

    def spread(fits):
        heads = []
        for seed in range(4):
            start = network()
            found = replace(QUICK, fits=fits, erm=replace(PLAIN, epochs=0), strengths=(1.0,))
            heads.append(head_of(found.fit(start, shortcut(), val=val, seed=seed).model).weight.detach())
        return float(torch.stack(heads).std(0).mean())

    assert spread(8) < 0.7 * spread(1)


def test_settings_with_which_nothing_can_be_fitted_are_refused():
    with pytest.raises(UnspurError, match=r"strengths must be numbers above 0 but got \[0.0\]"):
        DFR(strengths=(0.0,))
    with pytest.raises(UnspurError, match="fits and steps must be at least 1 but got 0, 2000"):
        DFR(fits=0)
