import math

import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.parts.select import BestOnMined, clearly_lower
from unspur.train.session import Session

# One number a sample, and a model that says class 1 above its threshold; the last twenty samples are mined.
VAL = Split(
    torch.tensor([[-2.0], [-1.0], [1.0], [2.0], *([[-0.5], [-0.6], [-0.4], [-0.3], [-0.2]] * 4)]),
    torch.tensor([0, 0, 1, 1, *[1] * 20]),
)
MINED = torch.arange(24) >= 4


def threshold(at):
    model = nn.Linear(1, 2)
    put(model, at)
    return model


def put(model, at):
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0], [1.0]]))
        model.bias.copy_(torch.tensor([0.0, -at]))


def look(best, step):
    """Score what ``best`` watches as it is after ``step`` steps."""
    best.step = step
    return best.figures()


def at(model):
    return round(-model.bias[1].item(), 3)


def loss(at, members):
    """Of samples x with labels y the model has logits (0, x - at): cross-entropy log(1 + e^(x - at)) - y (x - at)."""
    score = VAL.x[members, 0].double() - at
    return float((torch.log1p(score.exp()) - VAL.y[members] * score).mean())


def test_the_mined_samples_alone_decide():
    model = threshold(0.0)
    best = BestOnMined(model, VAL, MINED, Session())
    seen = look(best, 1)
    assert (seen["val_mined_accuracy"], seen["val_other_accuracy"]) == (0.0, 1.0)
    assert seen["val_mined_loss"] == pytest.approx(loss(0.0, MINED), abs=1e-6)
    put(model, -9.0)
    look(best, 2)
    put(model, 5.0)
    look(best, 3)
    # At -9 the four others are explained much worse than at 0.
    both = {at: (loss(at, MINED) + loss(at, ~MINED)) / 2 for at in (0.0, -9.0)}
    assert both[-9.0] > both[0.0] and loss(-9.0, MINED) < loss(0.0, MINED)
    found = best.restore()
    assert found.pop("loss") == pytest.approx(loss(-9.0, MINED), abs=1e-6)
    assert found == {"by": "mined validation samples", "step": 2, "mined": 20, "of": 24}
    assert at(model) == -9.0


def test_what_may_be_chance_does_not_replace_the_model_from_before():
    # 24 mined samples of six kinds; those at places 0, 2, 4, ... are the first half, 1, 3, 5, ... the second
    val = Split(torch.cat([torch.eye(6).repeat(4, 1), torch.zeros(2, 6)]), torch.ones(26, dtype=torch.long))
    mined = torch.arange(26) < 24

    def model(*logits):
        """A mined sample of kind i has logit logits[i] for its class, and 0 for the other."""
        net = nn.Linear(6, 2, bias=False)
        with torch.no_grad():
            net.weight.copy_(torch.tensor([[0.0] * 6, logits]))
        return net

    def restored(*steps):
        net = model(*steps[0])
        best = BestOnMined(net, val, mined, Session())
        for step, logits in enumerate(steps, start=7):
            net.load_state_dict(model(*logits).state_dict())
            look(best, step)
        return net, best.restore(before=model(*[0.0] * 6))

    # Each half chooses the step that is better on its own samples, and is no better on the other's.
    net, found = restored((9.0, 0.0, 9.0, 0.0, 9.0, 0.0), (0.0, 9.0, 0.0, 9.0, 0.0, 9.0))
    assert found["step"] == 0 and found["loss"] == found["loss_before"] == pytest.approx(math.log(2))
    assert found["loss_after"] == pytest.approx(math.log(2) / 2, abs=1e-3)
    assert not net.weight.any()
    net, found = restored((0.0, 9.0, 0.0, -9.0, 0.0, 0.0))  # better on some, and worse on as many
    assert found["step"] == 0 and not net.weight.any()
    net, found = restored([0.1] * 6)  # little, but on all
    assert found["step"] == 7 and found["loss"] == found["loss_after"] < found["loss_before"]
    assert net.weight.any()


def test_both_halves_test_so_that_half_of_the_samples_need_not_show_it_alone():
    # Gains of mean 0.4 and deviation 1 on 40 samples: t is about 2.5 on all of them, which passes 2.02 seven times in
    # ten, and 1.8 on twenty, which passes 2.09 two times in five.
    class Gains(BestOnMined):
        def _scored(self, model):
            noise = torch.randn(41, generator=generator, dtype=torch.float64)
            return noise - (0.4 if model is self.model else 0.0) * 2**0.5, torch.zeros(41)

    generator = torch.Generator().manual_seed(0)
    val, mined = Split(torch.zeros(41, 1), torch.zeros(41, dtype=torch.long)), torch.arange(41) < 40
    passed = 0
    for _ in range(300):
        best = Gains(threshold(0.0), val, mined, Session())
        look(best, 1)
        passed += best.restore(before=threshold(0.0))["step"] > 0
    assert passed / 300 == pytest.approx(0.7, abs=0.08)


@pytest.mark.parametrize("n", [10, 40])
def test_chance_alone_passes_for_clear_once_in_forty(n):
    # With 1.96 standard errors, which is for a deviation that is known, it would be 4.1 % of the time for ten samples.
    # 0.007 is 4 standard errors of a share of 0.025 among 8,000.
    generator = torch.Generator().manual_seed(0)
    gains = torch.randn(8000, n, generator=generator, dtype=torch.float64)
    passed = sum(clearly_lower(-row, than=torch.zeros(n)) for row in gains) / 8000
    assert passed == pytest.approx(0.025, abs=0.007)


@pytest.mark.parametrize(("steps", "shared"), [(1, 0.0), (3, 0.0), (20, 0.0), (3, 0.7)])
def test_chance_passes_about_one_time_in_twenty_at_most_whatever_was_chosen_from(steps, shared):
    # Losses of 40 mined samples that no step changes but by chance; ``shared`` of the deviation is that of all steps.
    # Chosen and tested by the same samples, the best of twenty would pass one time in three. At the level of one in
    # twenty it is nine in a hundred where three steps have nothing in common: halves that choose the same step test it
    # on samples that chose it. 0.004 is the standard error of a share of 0.05 among 2,500.
    class ByChance(BestOnMined):
        def _scored(self, model):
            if model is not self.model:
                return torch.zeros(41, dtype=torch.float64), torch.zeros(41)
            own = torch.randn(41, generator=generator, dtype=torch.float64)
            return shared * common + (1 - shared**2) ** 0.5 * own, torch.zeros(41)

    generator = torch.Generator().manual_seed(0)
    val, mined = Split(torch.zeros(41, 1), torch.zeros(41, dtype=torch.long)), torch.arange(41) < 40
    passed, before = 0, threshold(0.0)
    for _ in range(2500):
        best = ByChance(threshold(0.0), val, mined, Session())
        common = torch.randn(41, generator=generator, dtype=torch.float64)
        for step in range(1, steps + 1):
            look(best, step)
        passed += best.restore(before=before)["step"] > 0
    assert 0.015 < passed / 2500 < 0.065


def test_of_equal_losses_the_first_counts():
    model = threshold(-0.7)
    best = BestOnMined(model, VAL, MINED, Session())
    look(best, 1)
    look(best, 2)
    assert best.restore()["step"] == 1


def test_the_best_so_far_survives_an_interruption():
    first = BestOnMined(threshold(-0.7), VAL, MINED, Session())
    look(first, 1)
    model = threshold(3.0)
    best = BestOnMined(model, VAL, MINED, Session())
    best.load(first.state())
    look(best, 2)
    assert best.restore()["step"] == 1 and at(model) == -0.7


def test_without_enough_mined_samples_the_last_weights_stay_and_the_reason_is_told():
    model = threshold(0.3)
    for val, mined, why in (
        (None, None, "There is no validation set."),
        (
            VAL,
            torch.zeros(24, dtype=torch.bool),
            "Mining took 0 of the 24 validation samples; to choose by them takes 20",
        ),
        (VAL, torch.arange(24) > 4, "Mining took 19 of the 24 validation samples; to choose by them takes 20"),
        (
            VAL,
            torch.ones(24, dtype=torch.bool),
            "Mining took 24 of the 24 validation samples; to choose by them takes 20",
        ),
    ):
        best = BestOnMined(model, val, mined, Session())
        assert look(best, 1) == {}
        found = best.restore()
        assert found["by"] == "the last step" and found["why"].startswith(why)
        assert at(model) == 0.3
