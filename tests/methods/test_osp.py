import pytest
import torch
from torch import nn

from methods.abstaining import confidence, half_noise, surer_where_it_can_be
from methods.shortcuts import network
from unspur.data.base import Batch, Split
from unspur.errors import UnspurError
from unspur.methods.osp import OSP
from unspur.parts.one_sided import Multipliers, sides
from unspur.train.moments import Minimised, Moment
from unspur.train.recipe import SGD

RECIPE = SGD(lr=0.05, epochs=10, batch_size=64)


def duals(classes=3, mu=0.5):
    return Multipliers(classes, mu, 0.1, 0.2, torch.device("cpu"))


def test_the_objective_is_equation_9_written_as_a_loop():
    generator = torch.Generator().manual_seed(0)
    x, y, model = torch.randn(7, 4, generator=generator), torch.tensor([0, 0, 1, 1, 1, 2, 2]), nn.Linear(4, 3)
    held = duals(mu=0.7)
    held.lam, held.slack = torch.tensor([0.5, 1.0, 2.0]), torch.tensor([0.1, 0.2, 0.3])
    chance, total = model(x).softmax(1), 0.0
    for k in range(3):
        missed = torch.stack([-chance[i, k].log() for i in range(7) if y[i] == k]).mean()
        # the mistakes are those of the other classes' samples, and not of its own
        mistaken = torch.stack([-(1 - chance[i, k]).log() for i in range(7) if y[i] != k]).mean()
        total = total + missed + held.lam[k] * (mistaken - held.slack[k]) + 0.7 * held.slack[k]
    assert torch.isclose(held.objective(model, Batch(x, y, torch.arange(7)), 0).loss, total, atol=1e-5)


def test_multipliers_ascend_and_slacks_descend_and_neither_is_negative():
    held, logits, y = duals(mu=0.5), torch.randn(6, 3, generator=torch.Generator().manual_seed(1)), torch.arange(6) % 3
    mistaken = sides(logits, y).mistaken
    held.lam, held.slack = torch.tensor([1.0, 0.2, 0.0]), torch.tensor([0.5, 0.0, 100.0])
    moment = Moment(nn.Identity(), "", 0, 0, None, Batch(logits, y, y), Minimised(torch.zeros(()), logits))
    held.see(moment)
    # lambda + 0.2 (mistaken - phi); phi - 0.1 (mu - lambda): 0.5 + 0.05, 0 - 0.03 and 100 - 0.05
    expected = torch.tensor([1.0 + 0.2 * (mistaken[0] - 0.5), 0.2 + 0.2 * mistaken[1], 0.0])
    assert torch.allclose(held.lam, expected) and torch.allclose(held.slack, torch.tensor([0.55, 0.0, 99.95]))


def test_a_batch_that_lacks_a_class_misses_nothing_of_it():
    found = sides(torch.zeros(2, 3), torch.tensor([0, 0]))
    assert found.missed.tolist()[1:] == [0.0, 0.0] and torch.isfinite(found.mistaken).all()
    assert found.mistaken[0] == 0  # no sample could be taken for it


def test_a_certain_mistake_costs_much_but_not_infinity():
    logits = torch.tensor([[100.0, 0.0]], requires_grad=True)
    found = sides(logits, torch.tensor([1]))
    assert torch.isfinite(torch.stack(found)).all()
    assert torch.isfinite(torch.autograd.grad(found.mistaken.sum(), logits)[0]).all()


def test_where_classes_contradict_each_other_a_dearer_slack_lowers_every_probability_but_the_likeliest():
    # one input, labels 3 to 1: with multipliers held at mu the minimum is found by a search over f_0
    x, y = torch.ones(400, 1), torch.tensor([0, 0, 0, 1] * 100)
    method = OSP(training=SGD(lr=0.05, epochs=60, batch_size=400), mu=1.67, rate=1e-9, slack_rate=1e-9)
    fit = method.fit(nn.Linear(1, 2), Split(x, y))
    f = torch.linspace(0.01, 0.99, 99).double()
    # both classes count alike, whatever their sizes: -log f - log(1 - f) and the multipliers' mean of 1 for each side
    cost = -f.log() - (1 - f).log() - (1 - f).log() - f.log()
    found = fit.model(torch.ones(1, 1)).softmax(1)[0, 0].item()
    assert found == pytest.approx(float(f[cost.argmin()]), abs=0.03)


def test_it_is_surer_where_labels_can_be_told_and_its_multipliers_are_kept():
    fit = OSP(training=RECIPE).fit(network(), half_noise())
    assert surer_where_it_can_be(fit) > 0.7
    assert len(fit.facts["multipliers"]) == 2 and confidence(fit, half_noise()).max() <= 1


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(UnspurError, match="mu must be a number above 0 but got 0"):
        OSP(mu=0.0)
    with pytest.raises(UnspurError, match="slack_rate and rate must be above 0"):
        OSP(rate=0.0)
