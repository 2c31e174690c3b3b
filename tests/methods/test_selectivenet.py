import pytest
import torch
from torch import nn

from methods.abstaining import confidence, half_noise, surer_where_it_can_be
from methods.shortcuts import network
from unspur.errors import UnspurError
from unspur.methods import selectivenet
from unspur.methods.selectivenet import SelectiveNet
from unspur.parts.abstaining import WithUnits, selective_loss
from unspur.train.recipe import SGD

RECIPE = SGD(lr=0.05, epochs=10, batch_size=64)


def test_the_objective_is_equation_3_written_as_a_loop(monkeypatch):
    data, model, found = half_noise(40), network().eval(), {}
    monkeypatch.setattr(selectivenet, "train_model", lambda both, *given, **rest: found.update(rest, both=both))
    SelectiveNet(coverage=0.8, lam=5.0, alpha=0.3).fit(model, data)
    batch, both = data.batch(torch.arange(40)), found["both"].eval()
    logits, units = both.outputs(both, batch.x)
    selected = [units[i, 0].sigmoid() for i in range(40)]
    coverage = sum(selected) / 40
    risk = sum(-logits[i].log_softmax(0)[batch.y[i]] * selected[i] for i in range(40)) / 40 / coverage
    # the auxiliary head learns from all samples, whatever is selected
    beside = sum(-units[i, 1:].log_softmax(0)[batch.y[i]] for i in range(40)) / 40
    expected = 0.3 * (risk + 5.0 * max(0.0, 0.8 - coverage.item()) ** 2) + 0.7 * beside
    assert torch.isclose(found["objective"](both, batch, 0).loss, expected)


def test_the_coverage_that_is_missing_pulls_the_selection_up():
    # one sample of loss 0: lambda (c - s)^2, whose slope is -2 lambda (c - s) = -2 x 32 x (0.9 - 0.4) = -32
    selected = torch.tensor([0.4], requires_grad=True)
    selective_loss(torch.zeros(1), selected, 0.9, 32.0).backward()
    assert torch.allclose(selected.grad, torch.tensor([-32.0]))


def test_more_coverage_than_asked_for_costs_nothing():
    losses = torch.tensor([1.0, 3.0])
    assert float(selective_loss(losses, torch.ones(2), 0.5, 32.0)) == 2.0
    # and the risk is that of the selected samples: less of both changes nothing but the coverage
    assert torch.isclose(selective_loss(losses, torch.full((2,), 0.5), 0.5, 32.0), torch.tensor(2.0))


def test_it_answers_where_labels_can_be_told_at_about_the_coverage_asked_for():
    fit = SelectiveNet(training=RECIPE, coverage=0.5).fit(network(), half_noise())
    assert surer_where_it_can_be(fit) > 0.8
    assert float(confidence(fit, half_noise(400, seed=5)).mean()) == pytest.approx(0.5, abs=0.1)
    assert fit.facts["abstains"] == "selection" and fit.artifacts["selector"].shape == (33,)


@pytest.mark.parametrize("normal", [True, False])
def test_the_selector_is_the_first_unit_on_the_features(normal):
    both = WithUnits(network(), 3, seed=0, normal=normal).train()
    for _ in range(20):
        both.outputs(both, 3 * torch.randn(50, 7) + 5)  # until the normalisation knows these samples
    x = 3 * torch.randn(5, 7) + 5
    logits, units = both.eval().outputs(both, x)
    features = both.network[:-1](x)
    found = both.selector("selection").confidence(features, logits)
    assert torch.allclose(found.float(), units[:, 0].sigmoid(), atol=1e-4)


def test_a_unit_on_large_features_is_certain_of_nothing_before_it_has_learnt():
    # or its sigmoid would have no slope left, and every sample would be selected for good
    x, model = torch.randn(50, 7, generator=torch.Generator().manual_seed(0)), nn.Sequential(Far(), nn.Linear(7, 2))
    for normal in (True, False):
        chosen = (both := WithUnits(model, 1, seed=0, normal=normal)).outputs(both, x)[1].sigmoid()
        assert bool((chosen.min() > 0.05) & (chosen.max() < 0.95)) == normal


class Far(nn.Module):
    """Features that are large and all alike but for a little."""

    def forward(self, x):
        return 1e3 + x


def test_what_cannot_work_is_refused():
    with pytest.raises(UnspurError, match=r"coverage must lie in \(0, 1\] but got 0"):
        SelectiveNet(coverage=0.0)
    with pytest.raises(UnspurError, match="does not end in a linear layer"):
        SelectiveNet().fit(nn.Sequential(nn.Conv2d(3, 2, 1), nn.Flatten()), half_noise())
