import pytest
import torch
from torch import nn

from methods.shortcuts import misled, network, shortcut
from unspur.errors import UnspurError
from unspur.methods import disent
from unspur.methods.disent import DisEnt
from unspur.methods.erm import ERM
from unspur.models.base import with_features
from unspur.parts.mining import mining_quality
from unspur.train.recipe import SGD
from unspur.train.session import Session

RECIPE = SGD(lr=0.02, epochs=12, batch_size=64)
SETTINGS = {"bias": 4.0, "swap": 2.0, "swap_bias": 3.0}


def caught(monkeypatch, method, data):
    """What a method trains, in evaluation mode, so that batch norm is a constant."""
    found = {}

    def train_model(both, *given, **rest):
        found.update(rest, both=both.eval(), difficulty=rest["carry"][0])

    monkeypatch.setattr(disent, "train_model", train_model)
    method.fit(network(), data)
    return found


def by_hand(both, batch, difficulty, order=None):
    """The losses of each sample, from the codes themselves."""
    core, bias = (with_features(net, batch.x)[0] for net in (both.kept, both.beside))

    def answers(core, bias, y_bias):
        of_core = both.reads_core(torch.cat([core, bias], 1)).log_softmax(1)
        of_bias = both.reads_bias(torch.cat([core, bias], 1)).log_softmax(1)
        rows = torch.arange(len(batch.y))
        return -of_core[rows, batch.y], -of_bias[rows, y_bias], -of_bias[rows, batch.y]

    hard, easy, own = answers(core, bias, batch.y)
    weight = difficulty.of_batch(torch.stack([own, hard]), batch)
    total = weight * hard + 4.0 * (1 - (-0.7 * easy).exp()) / 0.7
    if order is not None:
        hard, easy, _ = answers(core, bias[order], batch.y[order])
        total = total + 2.0 * (weight * hard + 3.0 * (1 - (-0.7 * easy).exp()) / 0.7)
    return total


def test_the_objective_is_the_papers_before_and_after_codes_change_places(monkeypatch):
    data = shortcut(64)
    found = caught(monkeypatch, DisEnt(training=RECIPE, after=0.5, **SETTINGS), data)  # 12 epochs of one batch
    both, batch = found["both"], data.batch(torch.arange(20))
    before = found["objective"](both, batch, 5).loss
    assert torch.allclose(before, by_hand(both, batch, found["difficulty"]), atol=1e-5)
    torch.manual_seed(3)
    after = found["objective"](both, batch, 6).loss
    torch.manual_seed(3)
    order = torch.randperm(20)
    expected = by_hand(both, batch, found["difficulty"], order)
    assert torch.allclose(after, expected, atol=1e-5)  # the weight is that of the sample whose core it is


@pytest.mark.parametrize(("samples", "after", "begin"), [(600, 1.0, 120), (600, 0.5, 60), (65, 1.0, 12)])
def test_after_is_a_share_of_the_steps_and_a_last_smaller_batch_is_a_step(monkeypatch, samples, after, begin):
    # 600 in batches of 64: nine whole ones and one of 24, ten steps in each of 12 epochs; of 65 the last joins the rest
    data, batch = shortcut(samples), shortcut(20).batch(torch.arange(20))
    found = caught(monkeypatch, DisEnt(training=RECIPE, after=after, **SETTINGS), data)
    drawn = []
    monkeypatch.setattr(disent.torch, "randperm", lambda count: drawn.append(count) or torch.arange(count))
    for step in (begin - 1, begin):
        found["objective"](found["both"], batch, step)
        assert len(drawn) == (step == begin)


def test_no_gradient_enters_the_code_of_the_other(monkeypatch):
    data = shortcut(64)
    both = caught(monkeypatch, DisEnt(), data)["both"]
    core, bias = both.answers(both.codes(both, data.x[:10]))
    inner = both.kept[0].weight, both.beside[0].weight
    for answer, own, other in ((core, *inner), (bias, *reversed(inner))):
        slopes = torch.autograd.grad(answer.square().sum(), (own, other), retain_graph=True)
        assert bool(slopes[0].any()) and not slopes[1].any()


def test_the_result_answers_as_with_the_bias_code_at_its_mean(monkeypatch):
    data = shortcut(64)
    both = caught(monkeypatch, DisEnt(), data)["both"]
    both.give_head(data, Session())
    core, bias = (with_features(net, data.x)[0] for net in (both.kept, both.beside))
    expected = both.reads_core(torch.cat([core, bias.mean(0).expand_as(bias)], 1))
    assert torch.allclose(both.kept(data.x), expected, atol=1e-4)


def test_conflicting_samples_are_found_and_classified_better_than_by_plain_training():
    data = shortcut()
    plain, fit = (
        ERM(erm=RECIPE).fit(network(), data),
        DisEnt(training=RECIPE, bias=1.0, swap_bias=1.0).fit(network(), data),
    )
    assert misled(fit) > misled(plain) + 0.2
    assert mining_quality(fit.mining.train.nonzero().squeeze(1), data)["recall"] > 0.8


def test_what_cannot_work_is_refused():
    with pytest.raises(UnspurError, match=r"after must lie in \[0, 1\] but got 2"):
        DisEnt(after=2.0)
    with pytest.raises(UnspurError, match="last layer has no bias"):
        DisEnt().fit(nn.Sequential(nn.Linear(7, 4), nn.ReLU(), nn.Linear(4, 2, bias=False)), shortcut())
