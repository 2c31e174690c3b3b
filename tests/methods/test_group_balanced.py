import torch

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.data.base import groups_of
from unspur.methods.erm import ERM
from unspur.methods.group_balanced import GroupBalanced


def test_every_group_is_drawn_alike_often(monkeypatch):
    orders = []
    monkeypatch.setattr("unspur.methods.group_balanced.train_model", lambda *args, order, **rest: orders.append(order))
    data = shortcut()
    GroupBalanced().fit(network(), data)
    drawn = groups_of(data).id[orders[0].sample(8000, torch.Generator().manual_seed(0))]
    # four groups, of 600 samples 30 in the two small ones; balancing labels alone leaves these at 5 %
    assert torch.allclose(torch.bincount(drawn) / 8000, torch.full((4,), 0.25), atol=0.03)


def test_conflicting_samples_are_classified_better_than_by_plain_training():
    plain, fit = ERM(erm=PLAIN).fit(network(), shortcut()), GroupBalanced(training=PLAIN).fit(network(), shortcut())
    assert misled(plain) < 0.1 and misled(fit) > misled(plain) + 0.3
