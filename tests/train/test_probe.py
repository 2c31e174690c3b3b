import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.train.losses import cross_entropy
from unspur.train.probe import Probe, Trial, highest_rate
from unspur.train.recipe import SGD
from unspur.train.session import Session


def bowl(n=64, size=1.0):
    """Two classes at x = +size and x = -size: the loss of a linear model curves with size^2."""
    y = torch.arange(n) % 2
    return Split((y * 2.0 - 1).unsqueeze(1) * size, y)


class Cubic(nn.Module):
    """A loss that overflows once a step is too long, as networks without normalisation do."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        z = x * self.w**3
        return torch.cat([-z, z], 1)


def run(probe, recipe, model=None, split=None, session=None):
    return probe.run(model or Cubic(), split or bowl(), recipe, session or Session())


def test_rates_rise_from_the_recipes_own_until_one_diverges():
    # w^3 has slope 3 w^2: a step of 1e15 overflows in the next forward pass, one of 1e3 does not
    trials = run(Probe(steps=4, factor=1e6, tries=5), SGD(lr=1e-3, momentum=0.0, batch_size=64))
    assert [trial.lr for trial in trials] == pytest.approx([1e-3, 1e3, 1e9, 1e15][: len(trials)])
    assert all(trial.accuracy is not None for trial in trials[:-1])
    assert trials[-1].accuracy is None


def test_a_rate_that_loses_a_quarter_of_the_accuracy_ends_the_search():
    trials = [Trial(0.1, 0.9, 0.4, True), Trial(0.2, 0.66, 2.0, True), Trial(0.4, 0.64, 3.0, True)]
    # the best is 0.9: 0.66 is 24 points below, 0.64 is 26
    assert Probe().usable(trials) == [0.1, 0.2]
    assert Probe()._over(trials) and not Probe()._over(trials[:2])


def test_a_constant_answer_does_not_converge_however_frequent_its_class():
    # 80 % of the samples have one class: always answering with it is within 25 points of the best
    trials = [Trial(0.1, 0.95, 0.2, True), Trial(0.2, 0.8, 0.69, False)]
    assert Probe().usable(trials) == [0.1]
    assert Probe()._over(trials)


def test_the_probe_minimises_the_methods_own_loss():
    steps = []

    def loss(logits, batch):
        steps.append(len(batch.y))
        return cross_entropy(logits, batch)

    Probe(steps=2, tries=1).run(Cubic(), bowl(), SGD(batch_size=64), Session(), loss)
    assert steps[:2] == [64, 64]


def test_a_rate_too_low_to_learn_in_a_few_steps_is_no_reason_to_stop():
    trials = [Trial(0.001, 0.1, 2.3, False), Trial(0.002, 0.6, 1.5, True)]
    assert not Probe()._over(trials)
    assert Probe().usable(trials) == [0.002]


def test_a_start_that_diverges_at_once_falls_until_something_is_learned():
    trials = run(Probe(steps=4, factor=1e3, tries=10), SGD(lr=1e20, momentum=0.0, batch_size=64))
    rates = [trial.lr for trial in trials]
    assert rates[:2] == pytest.approx([1e20, 1e17]) and rates == sorted(rates, reverse=True)
    learned = [trial.learned for trial in trials]
    assert learned.index(True) == len(trials) - 2  # and once more, to compare with


def test_rates_end_where_numbers_end_and_fall_from_there():
    trials = run(Probe(steps=4, factor=1e6, tries=10), SGD(lr=1e35, momentum=0.0, batch_size=64))
    assert [trial.lr for trial in trials[:2]] == pytest.approx([1e35, 1e29]) and any(trial.learned for trial in trials)


def test_nothing_that_can_be_learned_is_an_error_that_names_the_rates():
    noise = Split(torch.zeros(64, 1), torch.arange(64) % 2)
    with pytest.raises(UnspurError, match=r"No learning rate from 0.01 to 0.08 learns anything in 3 steps"):
        probe = Probe(steps=3, tries=2)
        highest_rate(Cubic(), noise, SGD(lr=0.04), probe, Session())


def test_the_highest_rate_that_converges_comes_first():
    rates, trials = highest_rate(Cubic(), bowl(), SGD(lr=0.01, batch_size=64), Probe(steps=5, tries=3), Session())
    assert rates == sorted(rates, reverse=True) and len(trials) == 3


def test_the_model_is_left_as_it_was():
    model = Cubic()
    run(Probe(steps=2, tries=2), SGD(batch_size=64), model)
    assert model.w.item() == 0.5 and model.w.grad is None


def test_what_was_tried_is_not_tried_again(tmp_path):
    probe, recipe = Probe(steps=2, tries=4), SGD(batch_size=64)
    whole = run(probe, recipe)
    left = 3

    def stop(stage, done):
        nonlocal left
        left -= 1
        if left < 0:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run(probe, recipe, session=Session(folder=tmp_path, progress=stop))
    tried = []
    resumed = run(probe, recipe, session=Session(folder=tmp_path, progress=lambda stage, done: tried.append(stage)))
    assert resumed == whole
    assert tried and f"rate {recipe.lr:g}" not in tried  # the first was done


def test_the_probe_takes_as_many_steps_as_it_is_told():
    steps = []
    session = Session(progress=lambda stage, done: steps.append(done))
    run(Probe(steps=5, tries=1), SGD(batch_size=32), split=bowl(64), session=session)  # two batches an epoch
    run(Probe(steps=3, tries=1), SGD(batch_size=8), split=bowl(64), session=session)  # eight batches, three are enough
    assert len(steps) == 2 * (6 + 3)  # whole epochs: 6 for 5; each once more downwards, to compare with


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"factor": 1.0}, {"tries": 0}, {"lost": 1.0}, {"samples": 0}])
def test_a_value_out_of_range_is_named(wrong):
    (name,) = wrong
    with pytest.raises(UnspurError, match=f"probe.{name} must"):
        Probe(**wrong)
