import math

import pytest
import torch

from unspur.errors import UnspurError
from unspur.train.recipe import SGD, Adadelta, Adam, AdamW, Kron
from unspur.train.schedules import Constant, Cosine, Drop, MultiStep, StepDecay, WarmupStableDecay


@pytest.mark.parametrize(
    ("schedule", "epoch", "factor"),
    [
        (Constant(), 3.7, 1.0),
        (StepDecay(every=2, gamma=0.5), 1.99, 1.0),
        (StepDecay(every=2, gamma=0.5), 4.0, 0.25),
        (MultiStep(at=(1, 3), gamma=0.1), 0.9, 1.0),
        (MultiStep(at=(1, 3), gamma=0.1), 3.0, 0.01),
        (Cosine(), 0.0, 1.0),
        (Cosine(), 2.5, 0.5),  # half way of five epochs: (1 + cos(pi/2)) / 2
        (WarmupStableDecay(warmup=0.2, decay=0.4), 0.0, 0.0),
        (WarmupStableDecay(warmup=0.2, decay=0.4), 0.5, 0.5),  # half of the first of five epochs
        (WarmupStableDecay(warmup=0.2, decay=0.4), 2.0, 1.0),
        (WarmupStableDecay(warmup=0.2, decay=0.4), 4.0, 0.5),  # one of the last two epochs is left
    ],
)
def test_a_schedule_multiplies_the_rate(schedule, epoch, factor):
    assert SGD(lr=0.2, epochs=5, schedule=schedule).rate(epoch, 0) == pytest.approx(0.2 * factor)


def test_a_drop_comes_after_a_number_of_steps_whatever_the_epoch():
    recipe = SGD(lr=0.5, epochs=5, schedule=Drop(after=1000, gamma=0.1))
    assert [recipe.rate(1.6, step) for step in (0, 999, 1000, 5000)] == pytest.approx([0.5, 0.5, 0.05, 0.05])


def test_all_stop_rules_that_are_set_must_hold():
    both = SGD(until_accuracy=1.0, until_loss=1e-5)
    assert both.reached(accuracy=1.0, loss=1e-6)
    assert not both.reached(accuracy=1.0, loss=1e-4)
    assert not both.reached(accuracy=0.99, loss=1e-6)
    assert SGD(until_accuracy=0.9).reached(accuracy=0.9, loss=5.0)


def test_without_a_stop_rule_training_goes_on():
    assert not SGD().reached(accuracy=1.0, loss=0.0)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"lr": 0.0}, r"lr must be above 0 and at most 3.4e\+38 but got 0.0"),
        ({"lr": math.nan}, r"lr must be above 0 and at most 3.4e\+38 but got nan"),
        ({"lr": 1e39}, r"lr must be above 0 and at most 3.4e\+38 but got 1e\+39"),
        ({"epochs": -1}, "epochs must be at least 0 but got -1"),
        ({"batch_size": 0}, "batch_size must be at least 1 but got 0"),
        ({"weight_decay": -0.1}, "weight_decay must be a number from 0 but got -0.1"),
        ({"l1": -1.0}, "l1 must be a number from 0 but got -1.0"),
        ({"asam": -1.0}, "asam must be a number from 0 but got -1.0"),
        ({"until_accuracy": 1.1}, r"until_accuracy must lie in \(0, 1\] but got 1.1"),
        ({"until_loss": 0.0}, "until_loss must be a number above 0 but got 0.0"),
        ({"until_loss": math.inf}, "until_loss must be a number above 0 but got inf"),
        ({"weight_decay": math.inf}, "weight_decay must be a number from 0 but got inf"),
        ({"l1": math.inf}, "l1 must be a number from 0 but got inf"),
        ({"asam": math.inf}, "asam must be a number from 0 but got inf"),
    ],
)
def test_a_value_out_of_range_is_named(wrong, sentence):
    with pytest.raises(UnspurError, match=sentence):
        Adam(**wrong)


@pytest.mark.parametrize("recipe", [SGD, Kron])
@pytest.mark.parametrize("momentum", [-0.1, 1.0, math.nan])
def test_momentum_that_no_optimiser_has_is_named(recipe, momentum):
    with pytest.raises(UnspurError, match="momentum must be at least 0 and below 1 but got"):
        recipe(momentum=momentum)


@pytest.mark.parametrize("schedule", [StepDecay, MultiStep, Drop])
@pytest.mark.parametrize("gamma", [0.0, -1.0, math.inf])
def test_a_factor_that_leaves_no_rate_is_named(schedule, gamma):
    with pytest.raises(UnspurError, match=r"schedule\.gamma must be a positive number but got"):
        schedule(gamma=gamma)


def test_an_epoch_before_the_first_is_named():
    with pytest.raises(UnspurError, match=r"schedule\.at must have epochs from 0 but got \[5, -1\]"):
        MultiStep(at=(5, -1))


def test_adamw_is_torchs_with_its_weight_decay():
    ours, theirs = (torch.ones(3, requires_grad=True) for _ in range(2))
    for value, optimiser in ((ours, AdamW().optimiser([ours])), (theirs, torch.optim.AdamW([theirs], lr=1e-3))):
        value.sum().backward()
        optimiser.step()
    plain = torch.ones(3, requires_grad=True)
    plain.sum().backward()
    Adam().optimiser([plain]).step()
    assert torch.equal(ours, theirs) and not torch.equal(ours, plain)


def test_adadelta_is_torchs_with_the_rate_of_its_mnist_example():
    ours, theirs = (torch.ones(3, requires_grad=True) for _ in range(2))
    optimisers = Adadelta(weight_decay=0.1).optimiser([ours]), torch.optim.Adadelta([theirs], lr=1.0, weight_decay=0.1)
    for value, optimiser in zip((ours, theirs), optimisers, strict=True):
        value.square().sum().backward()
        optimiser.step()
    assert torch.equal(ours, theirs) and not torch.equal(ours, torch.ones(3))
