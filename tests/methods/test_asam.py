from dataclasses import replace

import pytest
import torch

from methods.shortcuts import PLAIN, network, shortcut
from unspur.errors import UnspurError
from unspur.methods.asam import ASAM
from unspur.methods.erm import ERM


def test_it_is_plain_training_with_the_recipes_radius():
    whole = replace(PLAIN, batch_size=600)  # one batch: stages of other names see samples in another order
    expected = ERM(erm=replace(whole, asam=0.5)).fit(network(), shortcut()).model.state_dict()
    found = ASAM(training=whole, rho=0.5).fit(network(), shortcut()).model.state_dict()
    assert all(torch.allclose(expected[name].double(), found[name].double(), atol=1e-5) for name in expected)


def test_the_minimum_is_flatter_than_that_of_plain_training():
    data = shortcut()

    def sharpness(model):
        """How much the loss rises when every weight moves by 20 % of its size, up the gradient."""
        loss = torch.nn.functional.cross_entropy(model(data.x), data.y)
        slopes = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for weight, slope in zip(model.parameters(), slopes, strict=True):
                weight += 0.2 * weight.abs() * slope.sign()
            return float(torch.nn.functional.cross_entropy(model(data.x), data.y) - loss)

    longer = replace(PLAIN, epochs=8)
    plain, flat = ERM(erm=longer).fit(network(), data).model, ASAM(training=longer).fit(network(), data).model
    assert sharpness(flat) < sharpness(plain)


def test_a_radius_of_nothing_is_refused():
    with pytest.raises(UnspurError, match=r"rho must be a number above 0 but got 0"):
        ASAM(rho=0.0)
