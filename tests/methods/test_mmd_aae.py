from dataclasses import replace

import pytest
import torch
from torch import nn

from methods.shortcuts import SLOW, environments, misled, network, shortcut, small
from unspur.core.seeds import seeded
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.methods.mmd_aae import MMDAAE
from unspur.models.base import head_of, with_features
from unspur.parts.adversarial_codes import Coded, code_loss, reverse
from unspur.parts.feature_distances import mmd
from unspur.train.losses import cross_entropy
from unspur.train.recipe import SGD

TRAINING = SGD(lr=0.02, epochs=6, batch_size=64)


def coded(codes=4):
    model = small()
    with seeded(0):
        return Coded(model, head_of(model), codes)


def test_the_objective_is_the_sum_of_its_four_terms():
    data, model = environments(40), coded()
    batch, domain = data.batch(torch.arange(12)), data.attributes["domain"]
    torch.manual_seed(0)
    found = code_loss(model, domain, 0.1, 2.0, 0.3)(model, batch, 0)
    features, _ = with_features(model.network, batch.x)
    codes = model.encoder(features)
    losses, own = cross_entropy(model.classes(codes), batch), domain[batch.index]
    risk = (losses[own == 0].mean() + losses[own == 1].mean()) / 2
    lost = (model.decoder(codes) - features).square().mean()
    torch.manual_seed(0)
    prior = torch.distributions.Laplace(0.0, 0.5**0.5).sample((12, 4))
    real, fake = model.adversary(prior).sigmoid().log(), (1 - model.adversary(codes).sigmoid()).log()
    told = -torch.cat([real, fake]).mean()
    assert torch.isclose(found.loss, risk + 0.1 * lost + 2.0 * mmd(codes, own) + 0.3 * told, atol=1e-5)


def test_the_adversary_learns_to_tell_and_the_codes_to_hide_in_the_same_step():
    x = torch.ones(1, 1, requires_grad=True)
    (3 * reverse(x)).sum().backward()
    assert x.grad.tolist() == [[-3.0]]  # without the turn both would learn to tell


def test_in_the_objective_the_adversary_lowers_and_the_codes_raise_what_it_gets_wrong():
    data, model = environments(40), coded()
    batch, domain = data.batch(torch.arange(12)), data.attributes["domain"]
    codes, adversary = model.encoder.weight, model.adversary[0].weight

    def slopes(weight):
        torch.manual_seed(0)  # the same draw of the prior
        loss = code_loss(model, domain, 0.1, 2.0, weight)(model, batch, 0).loss
        return torch.autograd.grad(loss, [codes, adversary], materialize_grads=True)

    with_it, without = slopes(0.3), slopes(0.0)
    torch.manual_seed(0)
    prior = torch.distributions.Laplace(0.0, 0.5**0.5).sample((12, 4))
    fake = model.encoder(with_features(model.network, batch.x)[0])
    told = -torch.cat([model.adversary(prior).sigmoid().log(), (1 - model.adversary(fake).sigmoid()).log()]).mean()
    plain = torch.autograd.grad(told, [codes, adversary])
    assert min(float(slope.abs().max()) for slope in plain) > 1e-3  # other terms' slopes are near 1, rounded to 1e-6
    assert torch.allclose(with_it[0] - without[0], -0.3 * plain[0], atol=1e-5)  # reversed
    assert torch.allclose(with_it[1] - without[1], 0.3 * plain[1], atol=1e-5)


def test_encoder_and_classifier_become_the_networks_own_last_layer():
    model, x = coded(), environments(20).x
    expected = model(x)
    model.give_head()
    assert torch.allclose(model.network(x), expected, atol=1e-5)


def test_what_differs_between_domains_misleads_less_than_after_plain_training():
    data = shortcut(600, conflicting=60)
    plain, fit = ERM(erm=TRAINING).fit(network(), data), MMDAAE(training=TRAINING, codes=8).fit(network(), data)
    assert misled(fit) > misled(plain) + 0.2
    assert misled(fit) > misled(MMDAAE(training=TRAINING, codes=8, gamma=0.0).fit(network(), data)) + 0.2


def test_it_learns():
    learned = MMDAAE(training=SLOW, codes=8).fit(small(), environments()).model
    test = environments(seed=4)
    assert float((learned(test.x).argmax(1) == test.y).double().mean()) > 0.7


def test_a_last_layer_that_cannot_hold_what_is_fitted_is_refused():
    with pytest.raises(UnspurError, match="The last layer has no bias, which a fitted one needs"):
        MMDAAE(training=SLOW).fit(nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 2, bias=False)), environments())
    with pytest.raises(UnspurError, match="does something after its last linear layer"):
        MMDAAE(training=SLOW).fit(nn.Sequential(nn.Linear(2, 2), nn.Softmax(1)), environments())
    with pytest.raises(UnspurError, match="mmd_aae compares domains, but all training samples are of one"):
        MMDAAE(training=SLOW).fit(small(), replace(environments(), attributes={"domain": torch.zeros(4000).long()}))


def test_settings_below_their_range_are_refused():
    with pytest.raises(UnspurError, match="codes must be at least 1 but got 0"):
        MMDAAE(codes=0)
    with pytest.raises(UnspurError, match=r"must be from 0 but got \[0.1, -1.0, 0.1\]"):
        MMDAAE(gamma=-1.0)
