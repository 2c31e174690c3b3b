import torch
from torch import nn

from unspur.data.base import Split
from unspur.evaluation.scores import only_class


class Sign(nn.Module):
    """Class 1 where the first number is positive, and a count of the samples that were looked at."""

    seen = 0

    def forward(self, x):
        self.seen += len(x)
        return torch.stack([torch.zeros(len(x)), x[:, 0]], 1)


def of_class(sizes):
    y = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return Split(torch.stack([y * 2.0 - 1, torch.zeros(len(y))], 1), y)


def test_a_model_that_tells_classes_apart_shows_it_in_one_batch_though_samples_are_sorted_by_class():
    model = Sign().train()
    assert only_class(model, of_class([300, 300])) is None
    assert model.seen <= 50 and model.training


def test_a_model_with_one_answer_is_asked_about_every_sample():
    model, split = Sign(), of_class([300, 300])
    assert only_class(model, Split(split.x.abs(), split.y)) == 1
    assert model.seen == 600


def test_one_class_alone_tells_nothing():
    assert only_class(Sign(), of_class([20])) is None
