import pytest
import torch
from torch import nn

from methods.abstaining import confidence, half_noise, surer_where_it_can_be
from methods.shortcuts import network, shortcut
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
    assert torch.isclose(held.objective(model, Batch(x, y, torch.arange(7)), 0).loss, total / 3, atol=1e-5)


def test_multipliers_ascend_and_slacks_descend_and_neither_is_negative():
    held, logits, y = duals(mu=0.5), torch.randn(6, 3, generator=torch.Generator().manual_seed(1)), torch.arange(6) % 3
    mistaken = sides(logits, y).mistaken
    held.lam, held.slack = torch.tensor([1.0, 0.2, 0.0]), torch.tensor([0.5, 0.0, 100.0])
    moment = Moment(nn.Identity(), "", 0, 0, None, Batch(logits, y, y), Minimised(torch.zeros(()), logits))
    held.see(moment)
    # lambda + 0.2 (mistaken - phi); phi - 0.1 (mu - lambda): 0.5 + 0.05, 0 - 0.03 and 100 - 0.05
    expected = torch.tensor([1.0 + 0.2 * (mistaken[0] - 0.5), 0.2 + 0.2 * mistaken[1], 0.0])
    assert torch.allclose(held.lam, expected) and torch.allclose(held.slack, torch.tensor([0.55, 0.0, 99.95]))


def test_multipliers_begin_at_mu_and_slacks_at_the_first_batchs_mistakes_and_both_are_resumed():
    held, logits, y = duals(mu=0.7), torch.randn(6, 3, generator=torch.Generator().manual_seed(1)), torch.arange(6) % 3
    found, batch = sides(logits, y), Batch(logits, y, y)
    # lambda (mistaken - phi) is 0 at first, and mu phi = 0.7 mistaken
    first = held.objective(nn.Identity(), batch, 0)
    assert torch.isclose(first.loss, (found.missed + 0.7 * found.mistaken).mean())
    held.see(Moment(nn.Identity(), "", 0, 0, None, batch, first))
    assert torch.allclose(held.lam, torch.full((3,), 0.7)) and torch.allclose(held.slack, found.mistaken)
    resumed, other = duals(mu=0.7), Batch(-logits, y, y)
    resumed.load(held.state())
    for one in (held, resumed):
        one.see(Moment(nn.Identity(), "", 0, 1, None, other, Minimised(torch.zeros(()), -logits)))
    assert torch.equal(resumed.lam, held.lam) and torch.equal(resumed.slack, held.slack)
    assert not torch.allclose(held.lam, torch.full((3,), 0.7))


@pytest.mark.parametrize("mu", [0.49, 1.67])
def test_multipliers_stay_within_a_factor_of_two_of_mu_in_a_few_hundred_steps(monkeypatch, mu):
    seen, see = [], Multipliers.see
    monkeypatch.setattr(Multipliers, "see", lambda held, moment: see(held, moment) or seen.append(held.lam))
    fit = OSP(training=SGD(lr=0.05, epochs=30, batch_size=64), mu=mu).fit(network(), shortcut())
    lam = torch.stack(seen)
    assert len(lam) == 300 and lam.min() > mu / 2 and lam.max() < 2 * mu
    assert not fit.warnings


def test_a_multiplier_that_ends_at_0_is_told_of():
    # what is mistaken falls far below what the slacks begin with and keep
    fit = OSP(training=RECIPE, mu=0.01, rate=1e-2, slack_rate=1e-9).fit(network(), shortcut())
    assert fit.facts["multipliers"] == [0.0, 0.0]
    assert fit.warnings == ["Of 2 multipliers 2 ended at 0: for such a class its constraint was off; lower rate."]


def test_a_batch_that_lacks_a_class_misses_nothing_of_it():
    found = sides(torch.zeros(2, 3), torch.tensor([0, 0]))
    assert found.missed.tolist()[1:] == [0.0, 0.0] and torch.isfinite(found.mistaken).all()
    assert found.mistaken[0] == 0  # no sample could be taken for it


@pytest.mark.parametrize("gap", [10.0, 17.0, 100.0])
def test_a_certain_mistake_costs_its_lead_and_still_has_a_slope(gap):
    # -log(1 - f_0) = log(1 + exp(gap)); its slope by the logits is f_0 and -f_0, which is 1 and -1 however sure it is
    logits = torch.tensor([[gap, 0.0]], requires_grad=True)
    found = sides(logits, torch.tensor([1]))
    assert found.mistaken.tolist() == pytest.approx([gap, 0.0], rel=1e-4)
    slope = torch.autograd.grad(found.mistaken[0], logits)[0]
    assert torch.allclose(slope, torch.tensor([[1.0, -1.0]]), atol=1e-4)


@pytest.mark.parametrize(("mu", "likeliest"), [(0.49, 0.515), (1.67, 0.585)])
def test_where_classes_contradict_each_other_a_dearer_slack_lowers_every_probability_but_the_likeliest(mu, likeliest):
    # two inputs, labels of three classes; of two classes mu would change nothing, as 1 - f of one is f of the other
    count = torch.tensor([[160, 10, 10], [160, 10, 160]])
    x = torch.eye(2).repeat_interleave(count.sum(1), 0)
    y = torch.cat([torch.arange(3).repeat_interleave(of) for of in count])
    # rates that hold multipliers at mu, where they begin
    method = OSP(training=SGD(lr=0.2, epochs=300, batch_size=510), mu=mu, rate=1e-9, slack_rate=1e-9)
    fit = method.fit(nn.Linear(2, 3), Split(x, y))
    # the minimum for the first input by a search: all classes count alike, whatever their sizes, and so do the others
    f = torch.cartesian_prod(*[torch.arange(1, 200).double() / 200] * 2)
    f = torch.cat([f, 1 - f.sum(1, keepdim=True)], 1)[f.sum(1) < 0.999]
    own, rest = count[0] / count.sum(0), (count[0].sum() - count[0]) / (count.sum() - count.sum(0))
    best = f[(-(own * f.log()) - mu * rest * (1 - f).log()).sum(1).argmin()].float()
    assert best[0] == pytest.approx(likeliest)
    assert torch.allclose(fit.model(torch.eye(2)).softmax(1)[0], best, atol=0.02)


def test_it_is_surer_where_labels_can_be_told_and_its_multipliers_are_kept():
    fit = OSP(training=RECIPE).fit(network(), half_noise())
    assert surer_where_it_can_be(fit) > 0.7
    assert len(fit.facts["multipliers"]) == 2 and confidence(fit, half_noise()).max() <= 1


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(UnspurError, match="mu must be a number above 0 but got 0"):
        OSP(mu=0.0)
    with pytest.raises(UnspurError, match="slack_rate and rate must be above 0"):
        OSP(rate=0.0)
