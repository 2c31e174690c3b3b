import torch
from torch import nn

from unspur.data.base import Split
from unspur.train.best import BestOnMined
from unspur.train.session import Session

# One number a sample, and a model that says class 1 above its threshold; sample 4 is mined.
VAL = Split(torch.tensor([[-2.0], [-1.0], [1.0], [2.0], [-0.5]]), torch.tensor([0, 0, 1, 1, 1]))
MINED = torch.tensor([False, False, False, False, True])


def threshold(at):
    model = nn.Linear(1, 2)
    put(model, at)
    return model


def put(model, at):
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0], [1.0]]))
        model.bias.copy_(torch.tensor([0.0, -at]))


def at(model):
    return round(-model.bias[1].item(), 3)


def test_the_mined_samples_count_as_much_as_all_the_others():
    model = threshold(0.0)
    best = BestOnMined(model, VAL, MINED, "best", Session())
    # 0: others 4/4, mined 0/1: 0.5.  -1.5: others 3/4, mined 1/1: 0.875, with the same 4 of 5 right in all.
    assert best.review(1) == {"val_mined_accuracy": 0.0, "val_other_accuracy": 1.0}
    put(model, -1.5)
    best.review(2)
    put(model, 5.0)
    best.review(3)
    assert best.restore() == {"by": "mined validation groups", "step": 2, "score": 0.875, "mined": 1, "of": 5}
    assert at(model) == -1.5


def test_of_equal_scores_the_first_counts():
    model = threshold(-0.7)
    best = BestOnMined(model, VAL, MINED, "best", Session())
    best.review(1)
    put(model, -0.8)
    best.review(2)
    assert best.restore()["step"] == 1 and at(model) == -0.7


def test_the_best_so_far_survives_an_interruption(tmp_path):
    BestOnMined(threshold(-0.7), VAL, MINED, "best", Session(folder=tmp_path)).review(1)
    model = threshold(3.0)
    best = BestOnMined(model, VAL, MINED, "best", Session(folder=tmp_path))
    best.review(2)
    assert best.restore()["step"] == 1 and at(model) == -0.7


def test_without_mined_validation_samples_the_last_weights_stay_and_the_reason_is_told():
    model = threshold(0.3)
    for val, mined, why in (
        (None, None, "There is no validation set."),
        (VAL, torch.zeros(5, dtype=torch.bool), "Mining took 0 of the 5 validation samples."),
        (VAL, torch.ones(5, dtype=torch.bool), "Mining took 5 of the 5 validation samples."),
    ):
        best = BestOnMined(model, val, mined, "best", Session())
        assert best.review(1) == {}
        assert best.restore() == {"by": "the last step", "why": why}
        assert at(model) == 0.3
