from dataclasses import replace

import pytest
import torch

from methods.shortcuts import SLOW, environments, reversed_rule, small
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.methods.irm import IRM
from unspur.parts.domains import Seen
from unspur.parts.invariance import invariance

QUICK = IRM(training=SLOW, anneal=20)


def seen(logits, y, domain):
    return Seen(logits, logits, torch.tensor(y), torch.tensor(domain), torch.zeros(max(domain) + 1))


def test_the_penalty_is_the_squared_gradient_by_a_scale_on_the_logits_domain_by_domain():
    logits = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    y, domain = [0, 1, 2, 0, 1, 2, 0], [0, 0, 0, 0, 1, 1, 1]
    expected = []
    for number in (0, 1):
        own = torch.tensor(domain) == number
        w = torch.ones((), requires_grad=True)
        risk = torch.nn.functional.cross_entropy(w * logits[own], torch.tensor(y)[own])
        expected.append(torch.autograd.grad(risk, w)[0] ** 2)
    assert torch.isclose(invariance(seen(logits, y, domain)), sum(expected) / 2)


def test_it_is_not_the_product_of_two_halves_which_can_be_negative():
    # slopes of the two samples +a and -a: the halves' product is -a^2, the square of the mean 0
    logits = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    found = invariance(seen(logits, [0, 1], [0, 0]))
    p = 1 / (1 + torch.tensor(-1.0).exp())
    slopes = torch.stack([p - 1, p])
    assert torch.isclose(found, slopes.mean() ** 2) and found >= 0 > slopes[0] * slopes[1]


def test_a_scale_that_is_best_in_every_domain_costs_nothing():
    # logits are the true odds in both domains: 3 of 4 right at log 3
    z = torch.tensor(3.0).log()
    logits = torch.stack([torch.stack([z, z * 0])] * 8)
    found = invariance(seen(logits, [0, 0, 0, 1] * 2, [0] * 4 + [1] * 4))
    assert float(found) == pytest.approx(0, abs=1e-12)
    assert float(invariance(seen(2 * logits, [0, 0, 0, 1] * 2, [0] * 4 + [1] * 4))) > 1e-3


def test_what_differs_between_domains_is_not_used():
    plain, fit = ERM(erm=SLOW).fit(small(), environments()), QUICK.fit(small(), environments())
    assert reversed_rule(plain) < 0.25 and reversed_rule(fit) > 0.7  # the other number tells 75 %


def test_without_a_penalty_it_is_training_on_as_much_of_every_domain():
    assert reversed_rule(replace(QUICK, lam=0.0).fit(small(), environments())) < 0.3


def test_domains_must_be_several_and_the_penalty_must_come():
    data = environments(1000)
    with pytest.raises(UnspurError, match="all training samples are of one"):
        QUICK.fit(small(), data.subset(torch.arange(0, 1000, 2)))
    with pytest.raises(UnspurError, match="full weight after 500 steps, but the training has 20"):
        IRM(training=SLOW).fit(small(), data)
    with pytest.raises(UnspurError, match=r"lam must be a number from 0 but got -1"):
        IRM(lam=-1.0)
    with pytest.raises(UnspurError, match="anneal must be at least 0 but got -5"):
        IRM(anneal=-5)
