import pytest
import torch
from torch import nn

from methods.abstaining import confidence, half_noise, surer_where_it_can_be
from methods.shortcuts import network
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.methods import deep_gamblers
from unspur.methods.deep_gamblers import DeepGamblers
from unspur.parts.abstaining import gamblers_loss
from unspur.train.recipe import SGD, Adam

RECIPE = SGD(lr=0.05, epochs=10, batch_size=64)


def test_the_loss_is_equation_6_written_as_a_loop():
    generator = torch.Generator().manual_seed(0)
    logits, reserved, y = (
        torch.randn(5, 3, generator=generator),
        torch.randn(5, generator=generator),
        torch.arange(5) % 3,
    )
    found = gamblers_loss(logits, reserved, y, 2.2)
    for i in range(5):
        chance = torch.cat([logits[i], reserved[i : i + 1]]).softmax(0)
        assert torch.isclose(found[i], -(chance[y[i]] + chance[3] / 2.2).log())


@pytest.mark.parametrize(("share", "abstains"), [(0.9, 0.3), (0.6, 1.0)])
def test_a_gambler_keeps_back_what_the_odds_say(share, abstains):
    # one input, labels 0 in a share q of the samples, o = 1.5: nothing is bet unless q o > 1, and then 1 - q by 1 - 1/o
    # is kept back: 0.1 / (1/3) = 0.3 at q = 0.9, all at q = 0.6
    y = (torch.arange(200) >= 200 * share).long()
    method = DeepGamblers(training=Adam(lr=0.05, epochs=150, batch_size=200), after=0.01, payoff=1.5)
    data = Split(torch.ones(200, 1), y)
    fit = method.fit(nn.Linear(1, 2), data)
    assert 1 - float(confidence(fit, data)[0]) == pytest.approx(abstains, abs=0.06)


def test_nothing_is_bet_in_the_first_third_of_one_training(monkeypatch):
    calls, data = [], half_noise()

    def train_model(model, split, recipe, **rest):
        calls.append((recipe, rest["stage"]))
        batch = split.batch(torch.arange(9))
        logits, units = model.outputs(model, batch.x)
        plain = torch.nn.functional.cross_entropy(logits, batch.y, reduction="none")
        bet = gamblers_loss(logits, units[:, 0], batch.y, 2.2)
        for step, expected in ((0, plain), (42, plain), (43, bet), (129, bet)):  # 10 epochs of 13 steps
            torch.testing.assert_close(rest["objective"](model, batch, step).loss, expected)
        assert not torch.isclose(plain, bet).any()

    monkeypatch.setattr(deep_gamblers, "train_model", train_model)
    DeepGamblers(training=RECIPE).fit(network().eval(), data)
    assert calls == [(RECIPE, "training")]  # so that the rate does not begin again


def test_it_answers_where_labels_can_be_told():
    fit = DeepGamblers(training=RECIPE, payoff=1.6).fit(network(), half_noise())
    assert surer_where_it_can_be(fit) > 0.8 and fit.facts["abstains"] == "reservation"


def test_a_payoff_that_makes_abstaining_worse_than_guessing_is_said_and_one_below_1_refused():
    (said,) = DeepGamblers(training=SGD(epochs=0)).fit(network(), half_noise()).warnings
    assert said == "With 2 classes a payoff of 2.2 makes abstaining worse than guessing; lower it."
    with pytest.raises(UnspurError, match="payoff must be above 1 but got 1"):
        DeepGamblers(payoff=1.0)
    with pytest.raises(UnspurError, match=r"after must lie in \[0, 1\] but got 2"):
        DeepGamblers(after=2.0)
