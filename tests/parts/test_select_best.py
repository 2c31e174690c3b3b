import math

import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.parts.best import BestOnMined, clearly_lower
from unspur.train.session import Session

# One number a sample, and a model that says class 1 above its threshold; the last five samples are mined.
VAL = Split(
    torch.tensor([[-2.0], [-1.0], [1.0], [2.0], [-0.5], [-0.6], [-0.4], [-0.3], [-0.2]]),
    torch.tensor([0, 0, 1, 1, 1, 1, 1, 1, 1]),
)
MINED = torch.arange(9) >= 4


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


def test_the_mined_samples_alone_decide():
    model = threshold(0.0)
    best = BestOnMined(model, VAL, MINED, "best", Session())
    seen = best.review(1)
    assert (seen["val_mined_accuracy"], seen["val_other_accuracy"]) == (0.0, 1.0)
    assert seen["val_mined_loss"] == pytest.approx(loss(0.0, MINED), abs=1e-6)
    put(model, -9.0)
    best.review(2)
    put(model, 5.0)
    best.review(3)
    # At -9 the four others are explained much worse than at 0.
    both = {at: (loss(at, MINED) + loss(at, ~MINED)) / 2 for at in (0.0, -9.0)}
    assert both[-9.0] > both[0.0] and loss(-9.0, MINED) < loss(0.0, MINED)
    found = best.restore()
    assert found.pop("loss") == pytest.approx(loss(-9.0, MINED), abs=1e-6)
    assert found == {"by": "mined validation samples", "step": 2, "mined": 5, "of": 9}
    assert at(model) == -9.0


def test_what_may_be_chance_does_not_replace_the_model_from_before():
    val = Split(torch.cat([torch.eye(6), torch.zeros(2, 6)]), torch.ones(8, dtype=torch.long))
    mined = torch.arange(8) < 6

    def model(*logits):
        """The mined sample i has logit logits[i] for its class, and 0 for the other."""
        net = nn.Linear(6, 2, bias=False)
        with torch.no_grad():
            net.weight.copy_(torch.tensor([[0.0] * 6, logits]))
        return net

    def restored(*logits):
        net = model(*logits)
        best = BestOnMined(net, val, mined, "best", Session())
        best.review(7)
        return net, best.restore(before=model(*[0.0] * 6))

    net, found = restored(9.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # much, but on one sample alone
    assert found["step"] == 0 and found["loss"] == found["loss_before"] == pytest.approx(math.log(2))
    assert found["loss_after"] == pytest.approx(math.log(2) * 5 / 6, abs=1e-3)
    assert not net.weight.any()
    net, found = restored(*[0.1] * 6)  # little, but on all
    assert found["step"] == 7 and found["loss"] == found["loss_after"] < found["loss_before"]
    assert net.weight.any()


def test_chance_alone_passes_for_clear_once_in_twenty():
    generator = torch.Generator().manual_seed(0)
    gains = torch.randn(4000, 40, generator=generator, dtype=torch.float64)
    passed = sum(clearly_lower(-row, than=torch.zeros(40)) for row in gains) / 4000
    assert passed == pytest.approx(0.05, abs=0.012)


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


def test_without_enough_mined_samples_the_last_weights_stay_and_the_reason_is_told():
    model = threshold(0.3)
    for val, mined, why in (
        (None, None, "There is no validation set."),
        (VAL, torch.zeros(9, dtype=torch.bool), "Mining took 0 of the 9 validation samples; to choose by them takes 5"),
        (VAL, torch.arange(9) > 4, "Mining took 4 of the 9 validation samples; to choose by them takes 5"),
        (VAL, torch.ones(9, dtype=torch.bool), "Mining took 9 of the 9 validation samples; to choose by them takes 5"),
    ):
        best = BestOnMined(model, val, mined, "best", Session())
        assert best.review(1) == {}
        found = best.restore()
        assert found["by"] == "the last step" and found["why"].startswith(why)
        assert at(model) == 0.3
