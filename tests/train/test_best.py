import pytest
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


def loss(at, members):
    """Of samples x with labels y the model has logits (0, x - at): cross-entropy log(1 + e^(x - at)) - y (x - at)."""
    score = VAL.x[members, 0].double() - at
    return float((torch.log1p(score.exp()) - VAL.y[members] * score).mean())


def test_the_mined_samples_count_as_much_as_all_the_others():
    model = threshold(0.0)
    best = BestOnMined(model, VAL, MINED, "best", Session())
    seen = best.review(1)
    assert (seen["val_mined_accuracy"], seen["val_other_accuracy"]) == (0.0, 1.0)
    assert seen["val_mined_loss"] == pytest.approx(loss(0.0, MINED), abs=1e-6)
    put(model, -1.5)
    best.review(2)
    put(model, 5.0)
    best.review(3)
    # At -1.5 the four others are explained worse than at 0 and the mined one better, by more than a quarter of that.
    losses = {at: (loss(at, MINED) + loss(at, ~MINED)) / 2 for at in (0.0, -1.5, 5.0)}
    assert min(losses, key=losses.get) == -1.5 and loss(-1.5, ~MINED) > loss(0.0, ~MINED)
    found = best.restore()
    assert found.pop("loss") == pytest.approx(losses[-1.5], abs=1e-6)
    assert found == {"by": "mined validation groups", "step": 2, "mined": 1, "of": 5}
    assert at(model) == -1.5


def test_of_equal_losses_the_first_counts():
    model = threshold(-0.7)
    best = BestOnMined(model, VAL, MINED, "best", Session())
    best.review(1)
    best.review(2)
    assert best.restore()["step"] == 1


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
