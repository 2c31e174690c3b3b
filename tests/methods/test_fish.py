import copy

import pytest
import torch

from methods.shortcuts import SLOW, environments, reversed_rule, small
from unspur.errors import UnspurError
from unspur.methods.fish import Fish
from unspur.train.losses import cross_entropy
from unspur.train.orders import Place, Turns
from unspur.train.recipe import SGD
from unspur.train.session import Session

ONCE = SGD(lr=0.1, momentum=0.0, epochs=1, batch_size=100)


def test_a_turn_is_a_step_on_each_domain_and_then_half_the_way():
    data, start = environments(200), small()
    fit = Fish(training=ONCE).fit(small(), data)
    # 200 samples in batches of 100: two steps, which is one turn through both domains
    order = Turns(data.attributes["domain"])
    assert order.rounds(200, ONCE, 1) == [2]
    clone = copy.deepcopy(start)
    for step in range(2):
        batch = data.batch(order.index(Place(data, 100, "training", Session()), step))
        assert len(data.attributes["domain"][batch.index].unique()) == 1
        loss = cross_entropy(clone(batch.x), batch).mean()
        for weight, slope in zip(clone.parameters(), torch.autograd.grad(loss, clone.parameters()), strict=True):
            weight.data.sub_(0.1 * slope)
    for found, begin, end in zip(fit.model.parameters(), start.parameters(), clone.parameters(), strict=True):
        assert torch.allclose(found, begin + 0.5 * (end - begin), atol=1e-6)


def test_the_second_step_begins_where_the_first_ended():
    # steps that both begin at the start would add up to plain gradient descent: no inner product would be matched
    data, start = environments(200), small()
    order, place = Turns(data.attributes["domain"]), Place(environments(200), 100, "training", Session())
    slopes = []
    for step in range(2):
        batch = data.batch(order.index(place, step))
        slopes.append(torch.autograd.grad(cross_entropy(start(batch.x), batch).mean(), start.parameters()))
    apart = [begin - 0.05 * (a + b) for begin, a, b in zip(start.parameters(), *slopes, strict=True)]
    fit = Fish(training=ONCE).fit(small(), data)
    assert not all(torch.allclose(x, y, atol=1e-6) for x, y in zip(fit.model.parameters(), apart, strict=True))


def test_it_learns():
    fit = Fish(training=SLOW).fit(small(), environments())
    data = environments(seed=3)
    right = (fit.model(data.x).argmax(1) == data.y).double().mean()
    assert right > 0.75 and reversed_rule(fit) < 0.5


def test_a_share_outside_0_to_1_is_refused():
    with pytest.raises(UnspurError, match=r"meta must lie in \(0, 1\] but got 0"):
        Fish(meta=0.0)
