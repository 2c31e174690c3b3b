import torch
from torch import nn

from unspur.data.base import Split
from unspur.methods.class_balanced import ClassBalanced
from unspur.methods.erm import ERM
from unspur.train.recipe import SGD

RECIPE = SGD(lr=0.1, momentum=0.0, epochs=100, batch_size=30)


def test_the_prior_that_is_learnt_is_even_and_not_that_of_the_data():
    # one input for all samples, 27 of class 0 and 3 of class 1: all that can be learnt is how often each comes
    data = Split(torch.ones(30, 1), torch.tensor([0] * 27 + [1] * 3))
    plain, even = (method.fit(nn.Linear(1, 2), data) for method in (ERM(erm=RECIPE), ClassBalanced(training=RECIPE)))
    share = [float(fit.model(torch.ones(1, 1)).softmax(1)[0, 1].detach()) for fit in (plain, even)]
    assert abs(share[0] - 0.1) < 0.05 and abs(share[1] - 0.5) < 0.1


def test_it_sees_as_many_samples_as_plain_training(monkeypatch):
    orders = []
    monkeypatch.setattr("unspur.methods.class_balanced.train_model", lambda *args, order, **rest: orders.append(order))
    ClassBalanced().fit(nn.Linear(1, 2), Split(torch.ones(30, 1), torch.tensor([0] * 27 + [1] * 3)))
    assert orders[0].rounds(30, RECIPE, 1) == [1] * 100
