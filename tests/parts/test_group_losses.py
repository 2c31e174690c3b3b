import torch

from unspur.data.base import Split
from unspur.parts.group_losses import group_means, lone_sample_warnings


def test_gradients_reach_the_samples_of_each_group_by_its_share():
    values = torch.tensor([1.0, 2.0, 6.0], requires_grad=True)
    (group_means(values, torch.tensor([0, 0, 1]), 2) * torch.tensor([1.0, 10.0])).sum().backward()
    assert values.grad.tolist() == [0.5, 0.5, 10.0]


def test_many_groups_of_one_sample_are_counted():
    five = Split(torch.zeros(5, 1), torch.arange(5), {"a": torch.zeros(5, dtype=torch.long)})
    (said,) = lone_sample_warnings(five)
    assert said.startswith("Of each of the groups y=0, a=0; y=1, a=0; y=2, a=0 and 2 more there is one training")


def test_groups_of_two_are_not_mentioned():
    assert lone_sample_warnings(Split(torch.zeros(2, 1), torch.zeros(2).long(), {"a": torch.zeros(2).long()})) == []
