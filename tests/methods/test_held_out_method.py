"""What methods that fit the last layer on held-out data ask of these."""

import pytest
import torch

from methods.shortcuts import PLAIN, network, shortcut
from unspur.data.base import groups_of
from unspur.errors import UnspurError
from unspur.methods import dfr, dispel
from unspur.methods.dfr import DFR
from unspur.methods.dispel import DISPEL

SMALL = {"erm": PLAIN, "strengths": (1.0, 0.1), "fits": 5, "steps": 300}
METHODS = {dfr: DFR(**SMALL), dispel: DISPEL(**SMALL)}


def one_of_each():
    data = shortcut(400, conflicting=40, seed=5)
    group = groups_of(data).id
    return data.subset(torch.stack([(group == number).nonzero()[0, 0] for number in group.unique()]))


@pytest.mark.parametrize("module", METHODS, ids=lambda module: METHODS[module].name)
def test_validation_groups_of_one_sample_each_are_refused_before_anything_is_trained(module, monkeypatch):
    monkeypatch.setattr(module, "train_model", lambda *args, **rest: pytest.fail("it has trained"))
    with pytest.raises(UnspurError, match="Every group of the validation data has one sample only"):
        METHODS[module].fit(network(), shortcut(), val=one_of_each())


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_one_group_of_two_samples_is_enough_to_fit(method):
    val = one_of_each()
    more = val.subset(torch.cat([torch.arange(len(val)), torch.tensor([0])]))
    data = shortcut()
    least = int(torch.bincount(torch.cat([data.y, more.y])).min())
    expected = {"dfr": 4, "dispel": 2 * least}  # one of each group; all mixtures that a class has
    assert method.fit(network(), data, val=more).facts["fitted_samples"] == expected[method.name]


@pytest.mark.parametrize("module", METHODS, ids=lambda module: METHODS[module].name)
def test_validation_data_without_a_class_are_refused_for_the_last_layer_would_forget_it(module, monkeypatch):
    monkeypatch.setattr(module, "train_model", lambda *args, **rest: pytest.fail("it has trained"))
    val = shortcut(400, conflicting=40, seed=5)
    with pytest.raises(UnspurError, match=r"no sample of class \[1\], which the last layer would forget"):
        METHODS[module].fit(network(), shortcut(), val=val.subset((val.y == 0).nonzero().squeeze(1)))
