import json

import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.errors import Diverged, UnspurError
from unspur.train.loop import measure, reaching, train
from unspur.train.moments import Carry, Minimised
from unspur.train.orders import Draws, Passes, epoch_batches
from unspur.train.recipe import SGD, Adam
from unspur.train.schedules import StepDecay
from unspur.train.session import Session
from watching import Watch


def points(n=40, seed=0):
    """Two classes that a line separates."""
    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed))
    return Split(x, (x[:, 0] > 0).long())


def line(dropout=0.0):
    model = nn.Sequential(nn.Dropout(dropout), nn.Linear(2, 2))
    nn.init.constant_(model[1].weight, 0.1)
    nn.init.constant_(model[1].bias, 0.0)
    return model


def fit(model, split, recipe, **more):
    session = more.pop("session", None) or Session(seed=more.pop("seed", 0))
    train(model, split, recipe, stage="erm", session=session, **more)
    return model, session


def test_every_sample_is_seen_once_an_epoch():
    batches = epoch_batches(10, 4, torch.Generator().manual_seed(0))
    assert sorted(torch.cat(batches).tolist()) == list(range(10))
    assert [len(batch) for batch in batches] == [4, 4, 2]


def test_a_tail_too_short_for_every_rank_joins_the_batch_before_it():
    # 10 = 4 + 4 + 2, and two ranks need two samples each
    assert [len(b) for b in epoch_batches(10, 4, torch.Generator(), ranks=2)] == [4, 6]


def test_one_step_is_one_gradient_step_by_hand():
    split, recipe = points(8), SGD(lr=0.5, epochs=1, batch_size=8, momentum=0.0)
    model, _ = fit(line(), split, recipe)
    weight = torch.full((2, 2), 0.1, requires_grad=True)
    bias = torch.zeros(2, requires_grad=True)
    nn.functional.cross_entropy(split.x @ weight.T + bias, split.y).backward()
    assert torch.allclose(model[1].weight, weight - 0.5 * weight.grad, atol=1e-6)
    assert torch.allclose(model[1].bias, bias - 0.5 * bias.grad, atol=1e-6)


def test_the_schedule_is_stepped():
    recipe = SGD(lr=1.0, epochs=4, schedule=StepDecay(every=2, gamma=0.1))
    _, session = fit(line(), points(), recipe)
    assert [entry["lr"] for entry in session.history["erm"]] == pytest.approx([1.0, 1.0, 0.1, 0.1])


def test_training_stops_at_the_accuracy_asked_for():
    model, session = fit(line(), points(), Adam(lr=0.1, epochs=200, batch_size=40, until_accuracy=1.0))
    epochs = [entry["epoch"] for entry in session.history["erm"]]
    assert len(epochs) < 200
    assert measure(model, points(), session)[0] == 1.0
    assert all(entry["accuracy"] < 1.0 for entry in session.history["erm"][:-1])


@pytest.mark.parametrize(
    "rules",
    [
        {"until_accuracy": 1.0},
        {"until_accuracy": 0.9},
        {"until_loss": 0.3},
        {"until_accuracy": 0.8, "until_loss": 0.6},
        {},
    ],
)
@pytest.mark.parametrize("push", [0.0, 0.3, 30.0])
def test_stop_rules_hold_exactly_when_the_whole_set_meets_them(rules, push):
    recipe, split = SGD(lr=0.1, **rules), points(n=700)  # three batches of outputs
    model = line()
    with torch.no_grad():
        model[1].weight[1, 0] += push  # from guesses to certainty
    accuracy, loss = measure(model, split, Session())
    reached = reaching(model, split, recipe, Session())
    assert (reached is not None) == recipe.reached(accuracy, loss)
    if reached:
        assert reached == pytest.approx((accuracy, loss), rel=1e-6)


def test_a_stop_rule_is_given_up_at_the_first_wrong_sample():
    class Counting(nn.Module):
        seen = 0

        def forward(self, x):
            Counting.seen += len(x)
            return torch.zeros(len(x), 2)  # always class 0

    split = Split(torch.zeros(1250, 2), torch.arange(1250) % 2)
    assert reaching(Counting(), split, SGD(until_accuracy=1.0), Session()) is None
    assert Counting.seen == 250  # one batch of five


def test_a_last_step_that_leaves_no_finite_answer_is_divergence():
    # the loss before the only step is finite; the weights after it are too, but not what they give
    split = Split(torch.randn(40, 2, generator=torch.Generator().manual_seed(0)) * 1e10, torch.arange(40) % 2)
    with pytest.raises(Diverged, match="at step 1 of stage 'erm'"):
        fit(line(), split, SGD(lr=1e25, epochs=1, batch_size=40))


def test_the_global_generator_is_left_alone():
    model = line(dropout=0.5)
    before = torch.get_rng_state()
    fit(model, points(), SGD(epochs=2))
    assert torch.equal(before, torch.get_rng_state())


def test_the_seed_alone_decides():
    same = [fit(line(dropout=0.5), points(), SGD(epochs=2, batch_size=8), seed=1)[0][1].weight for _ in range(2)]
    other = fit(line(dropout=0.5), points(), SGD(epochs=2, batch_size=8), seed=2)[0][1].weight
    assert torch.equal(*same) and not torch.equal(same[0], other)


def test_a_loss_that_is_not_finite_names_its_step():
    split = points()
    split.x[17] = torch.inf
    with pytest.raises(Diverged, match="not finite at step") as error:
        fit(line(), split, SGD(epochs=1, batch_size=1))
    assert error.value.stage == "erm" and 0 <= error.value.step < 40


def test_a_carry_sees_every_step_with_its_losses():
    moments = []
    fit(line(), points(40), SGD(epochs=2, batch_size=10), carry=[Watch(moments.append)])
    assert [moment.step for moment in moments] == list(range(8))
    seen = torch.cat([moment.batch.index for moment in moments[:4]])
    assert sorted(seen.tolist()) == list(range(40))
    assert moments[0].losses.shape == (10,)


def test_an_empty_training_set_is_refused():
    with pytest.raises(UnspurError, match="nothing to train on"):
        fit(line(), points(0), SGD())


class Interrupt(Exception):
    pass


@pytest.mark.parametrize("at", [0, 3, 5, 11])
def test_an_interrupted_training_ends_with_the_same_bits(tmp_path, at):
    recipe = SGD(lr=0.1, epochs=3, batch_size=10, schedule=StepDecay(every=1, gamma=0.5))  # four steps an epoch
    whole, _ = fit(line(dropout=0.3), points(), recipe)

    def stop(moment):
        if moment.step == at:
            raise Interrupt

    with pytest.raises(Interrupt):
        fit(line(dropout=0.3), points(), recipe, session=Session(folder=tmp_path), carry=[Watch(stop)])
    idle = Watch(lambda moment: None)
    resumed, session = fit(line(dropout=0.3), points(), recipe, session=Session(folder=tmp_path), carry=[idle])
    assert torch.equal(whole[1].weight, resumed[1].weight)
    lines = [json.loads(text) for text in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [entry["epoch"] for entry in lines] == [1, 2, 3]
    assert lines == session.history["erm"]


def test_a_finished_stage_is_passed_through_at_once(tmp_path):
    recipe, steps = SGD(epochs=2), []
    first, _ = fit(line(), points(), recipe, session=Session(folder=tmp_path), carry=[Watch(lambda moment: None)])
    again, _ = fit(line(), points(), recipe, session=Session(folder=tmp_path), carry=[Watch(steps.append)])
    assert steps == []
    assert torch.equal(first[1].weight, again[1].weight)


class Balance(Carry):
    """Weights of two classes that rise with their losses: a toy of what GroupDRO carries along."""

    saved = ("q",)

    def __init__(self):
        self.q = torch.tensor([0.5, 0.5])

    def objective(self, model, batch, step):
        logits = model(batch.x)
        losses = nn.functional.cross_entropy(logits, batch.y, reduction="none")
        return Minimised(losses * self.q[batch.y] * 2, logits, {"q": self.q[1].clone()})

    def see(self, moment):
        mean = torch.stack([moment.losses[moment.batch.y == label].sum() for label in (0, 1)])
        self.q = torch.softmax(self.q.log() + 0.1 * mean, 0)


@pytest.mark.parametrize("order", [Passes(), Draws(torch.ones(40))])
@pytest.mark.parametrize("asam", [0.0, 0.5])
@pytest.mark.parametrize("at", [3, 6])
def test_what_is_carried_along_is_saved_with_the_training_and_resumed(tmp_path, order, asam, at):
    recipe = SGD(lr=0.1, epochs=3, batch_size=10, asam=asam)

    def run(session):
        balance = Balance()
        model, _ = fit(
            line(0.3), points(), recipe, session=session, objective=balance.objective, order=order, carry=[balance]
        )
        return model[1].weight, balance.q

    def stop(stage, done):
        if done > at / 12:
            raise Interrupt

    whole = run(Session())
    with pytest.raises(Interrupt):
        run(Session(folder=tmp_path, progress=stop))
    resumed = run(Session(folder=tmp_path))
    assert all(torch.equal(*pair) for pair in zip(whole, resumed, strict=True))
    assert not torch.equal(whole[1], torch.tensor([0.5, 0.5]))


def test_gradients_go_to_the_weights_alone():
    """An objective may make its input differentiable, and must not pay for a gradient that nobody reads."""
    inputs = []

    def objective(model, batch, step):
        x = batch.x.clone().requires_grad_()
        inputs.append(x)
        logits = model(x)
        return Minimised(nn.functional.cross_entropy(logits, batch.y, reduction="none"), logits)

    fit(line(), points(), SGD(epochs=1), objective=objective)
    assert inputs and all(x.grad is None for x in inputs)
