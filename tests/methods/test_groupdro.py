import dataclasses

import pytest
import torch
from torch import nn

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.data.base import Batch, Split, groups_of
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.methods.groupdro import GroupDRO
from unspur.parts.group_losses import GroupWeights
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised, Moment
from unspur.train.recipe import SGD

QUICK = GroupDRO(training=PLAIN, eta=0.1)


def batch_of(group):
    """A batch whose losses differ, the groups of its samples, and a linear model."""
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(len(group), 3, generator=generator), torch.tensor([0, 1] * 10)[: len(group)]
    model = nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_(torch.randn(2, 3, generator=generator))
    return model, Batch(x, y, torch.arange(len(group)))


def test_the_objective_is_algorithm_1_written_as_a_loop():
    group, eta, c = torch.tensor([0, 0, 0, 1, 2, 2]), 0.5, 2.0
    model, batch = batch_of(group)
    weights = GroupWeights(group, eta, c, torch.device("cpu"))
    weights.q = torch.tensor([0.2, 0.5, 0.3])
    losses = cross_entropy(model(batch.x), batch)
    risk, q = {}, {}
    for g, size in ((0, 3), (1, 1), (2, 2)):
        risk[g] = losses[group == g].mean()
        q[g] = weights.q[g] * torch.exp(eta * (risk[g] + c / size**0.5))  # n_g of the training set, not of the batch
    total = sum(q.values())
    expected = sum(q[g] / total * risk[g] for g in q)
    found = weights.loss(model, batch, 0)
    assert torch.isclose(found.loss, expected)
    weights.see(Moment(model, "", 0, 0, Split(batch.x, batch.y), batch, Minimised(found.loss, found.logits)))
    assert torch.allclose(weights.q, torch.stack([q[g] / total for g in q]))


def test_the_weights_have_no_gradient_of_their_own():
    # differentiating exp(eta * loss) as well would add eta * (loss - mean loss) to each group's share
    group = torch.tensor([0, 0, 1, 1])
    model, batch = batch_of(group)
    weights = GroupWeights(group, 3.0, 0.0, torch.device("cpu"))
    found = weights.loss(model, batch, 0).loss
    risks = [cross_entropy(model(batch.x), batch)[group == g].mean() for g in (0, 1)]
    q = weights.raised(torch.stack(risks), torch.ones(2).bool())
    expected = torch.autograd.grad(q[0] * risks[0] + q[1] * risks[1], model.weight)[0]
    assert torch.allclose(torch.autograd.grad(found, model.weight)[0], expected)


def test_a_small_group_with_the_same_loss_gets_the_larger_weight():
    # equal losses, sizes 100 and 4, C = 2, eta = 1: q1 / q0 = exp(2 / sqrt 4 - 2 / sqrt 100) = exp(0.8)
    weights = GroupWeights(torch.tensor([0] * 100 + [1] * 4), 1.0, 2.0, torch.device("cpu"))
    q = weights.raised(torch.tensor([0.7, 0.7]), torch.ones(2).bool())
    assert torch.isclose(q[1] / q[0], torch.tensor(0.8).exp())


def test_a_group_that_the_batch_lacks_keeps_its_weight_but_for_the_scaling():
    weights = GroupWeights(torch.tensor([0, 1, 2]), 1.0, 0.0, torch.device("cpu"))
    q = weights.raised(torch.tensor([1.0, float("nan"), 0.0]), torch.tensor([True, False, True]))
    assert torch.allclose(q, torch.tensor([2.718282, 1.0, 1.0]) / 4.718282)


def test_a_network_that_has_diverged_has_no_finite_loss():
    # a group's mean that is not a number because the network's answers are not: unlike that of a group not in the batch
    weights, model = GroupWeights(torch.tensor([0, 1, 2]), 1.0, 0.0, torch.device("cpu")), nn.Linear(2, 2)
    batch = Batch(torch.ones(2, 2), torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert torch.isfinite(weights.loss(model, batch, 0).loss)
    nn.init.constant_(model.weight, float("nan"))
    assert not torch.isfinite(weights.loss(model, batch, 0).loss)


def test_two_groups_that_contradict_each_other_end_alike_whatever_their_sizes():
    # one input, two labels, a linear model: the worst group is least wrong at 1/2
    x, y = torch.ones(40, 1), torch.tensor([0] * 30 + [1] * 10)
    data = Split(x, y, {"a": y})
    gently = SGD(lr=0.05, momentum=0.0, epochs=150, batch_size=20)
    fit = GroupDRO(training=gently, eta=0.02, adjustment=0.0).fit(nn.Linear(1, 2), data)
    probability = fit.model(torch.ones(1, 1)).softmax(1)[0]
    assert torch.allclose(probability, torch.tensor([0.5, 0.5]), atol=0.1)  # plain training ends at 0.75 and 0.25


def test_the_adjustment_raises_the_weights_of_small_groups_in_a_fit():
    # the first step's losses do not depend on C, so that one step's weights differ by exp(eta C / sqrt(n)) alone
    data, once = shortcut(), SGD(lr=0.02, epochs=1, batch_size=600)
    plain, raised = (
        torch.tensor(GroupDRO(training=once, eta=0.5, adjustment=c).fit(network(), data).facts["group_weights"])
        for c in (0.0, 5.0)
    )
    expected = plain * (0.5 * 5.0 / torch.bincount(groups_of(data).id).sqrt()).exp()
    assert torch.allclose(raised, expected / expected.sum())
    assert not torch.allclose(raised, plain, atol=0.05)


def test_every_group_is_drawn_alike_often(monkeypatch):
    data, drawn = shortcut(), []
    real = GroupWeights.see
    monkeypatch.setattr(GroupWeights, "see", lambda self, m: drawn.append(m.batch.index) or real(self, m))
    GroupDRO(training=dataclasses.replace(PLAIN, epochs=10)).fit(network(), data)
    counts = torch.bincount(groups_of(data).id[torch.cat(drawn)])
    assert torch.allclose(counts / counts.sum(), torch.full((4,), 0.25), atol=0.03)  # the small two are 5 % of the data


def test_conflicting_samples_are_classified_better_than_by_plain_training():
    plain, fit = ERM(erm=PLAIN).fit(network(), shortcut()), QUICK.fit(network(), shortcut())
    assert misled(plain) < 0.4 and misled(fit) > misled(plain) + 0.3
    weights = fit.facts["group_weights"]
    assert abs(sum(weights) - 1) < 1e-5 and len(weights) == 4


def test_a_group_of_one_sample_is_named_in_a_warning():
    data = shortcut(200, conflicting=0)
    told = data.attributes["told"].clone()
    told[0] = 1 - told[0]
    (said,) = QUICK.fit(network(), dataclasses.replace(data, attributes={"told": told})).warnings
    assert said.startswith(f"Of the group y={int(data.y[0])}, told={int(told[0])} there is one training sample;")


def test_negative_settings_are_refused():
    with pytest.raises(UnspurError, match=r"eta and adjustment must be from 0 but got .*eta=-1"):
        GroupDRO(eta=-1.0)
