import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.parts import inferred_groups
from unspur.parts.inferred_groups import BestRound, Inferred, train_on_groups
from unspur.train.recipe import SGD
from unspur.train.session import Session


def signs(weight):
    """A model of one number that predicts class 1 where ``weight`` times it is positive."""
    model = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[-weight], [weight]]))
    return model


def test_the_weights_are_those_of_the_round_that_is_best_for_the_worst_group():
    # group 0: three samples that sign +1 gets right; group 1: one that sign -1 gets right
    val = Split(torch.tensor([[1.0], [2.0], [-1.0], [1.0]]), torch.tensor([1, 1, 0, 0]))
    model = signs(1.0)
    best = BestRound(model, val, torch.tensor([0, 0, 0, 1]), Session())
    assert best.figures() == {"val_inferred_groups": 0.0}  # 3/3 and 0/1
    model.weight.data = torch.tensor([[0.5], [-0.5]])
    best.figures()  # 0/3 and 1/1: as bad for its worst, and the first stays
    model.weight.data = torch.zeros(2, 1)
    best.figures()  # class 0 for all: 1/3 and 1/1
    kept = model.weight.detach().clone()
    model.weight.data = torch.tensor([[-3.0], [3.0]])
    best.figures()
    assert best.restore() == pytest.approx(1 / 3) and torch.equal(model.weight, kept)


def test_the_mean_over_groups_can_choose_instead_of_the_worst():
    val = Split(torch.tensor([[1.0], [2.0], [-1.0], [1.0]]), torch.tensor([1, 1, 0, 0]))
    best = BestRound(signs(1.0), val, torch.tensor([0, 0, 0, 1]), Session(), mean=True)
    assert best.figures() == {"val_inferred_groups": 0.5}  # 3/3 and 0/1, and not 3/4


def test_without_validation_data_the_last_weights_are_the_result():
    best = BestRound(signs(1.0), None, None, Session())
    assert best.figures() == {} and best.restore() is None


def test_groups_are_drawn_alike_often_and_by_label_and_environment(monkeypatch):
    data = Split(torch.zeros(6, 1), torch.tensor([0, 0, 0, 0, 1, 1]))
    found, given = Inferred.by(data, torch.tensor([0, 0, 0, 1, 0, 0])), {}
    assert found.train.tolist() == [0, 0, 0, 1, 2, 2] and found.val is None
    monkeypatch.setattr(inferred_groups, "train_model", lambda *args, **rest: given.update(rest))
    figures = train_on_groups(signs(1.0), data, None, found, SGD(), Session())
    shares = torch.cat([given["order"].until[:1], given["order"].until.diff()])
    assert torch.allclose(shares, torch.tensor([1 / 3, 1 / 3, 1 / 3, 1, 1 / 2, 1 / 2]).double())
    assert figures == {"group_sizes": [3, 1, 2], "worst_inferred_group": None}
