import pytest
import torch
from torch import nn

from unspur.core.seeds import seeded
from unspur.data.augment import Augment
from unspur.data.base import Split
from unspur.data.masks import BitMask
from unspur.models.base import batch_norms
from unspur.train import loop
from unspur.train.batch_norm import BATCHES, settle_batch_norm
from unspur.train.loop import measure, outputs, train
from unspur.train.losses import cross_entropy
from unspur.train.moments import Carry, Minimised
from unspur.train.orders import Draws, Passes, Place
from unspur.train.recipe import SGD, Adam
from unspur.train.session import Session


def plain(net, batch, step):
    return Minimised(cross_entropy(net(batch.x), batch).mean())


def blobs(n=640, seed=0):
    """Ten classes, each a place in 16 dimensions, far from 0: nothing there is normalised by accident."""
    with seeded(0, "places"):
        places = torch.randn(10, 16)
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 10, (n,), generator=generator)
    return Split(20 + 5 * (places[y] + 0.7 * torch.randn(n, 16, generator=generator)), y)


def network(momentum=0.01, dropout=0.2):
    with seeded(0, "network"):
        layers = [nn.Linear(16, 32), nn.BatchNorm1d(32, momentum=momentum), nn.ReLU(), nn.Dropout(dropout)]
        layers += [nn.Linear(32, 32), nn.BatchNorm1d(32, momentum=momentum), nn.ReLU(), nn.Linear(32, 10)]
    return nn.Sequential(*layers)


FORTY = SGD(lr=0.05, epochs=4, batch_size=64)  # of 640 samples: 40 steps


def fit(model, session=None, recipe=FORTY, split=None, **more):
    train(model, split or blobs(), recipe, stage="erm", session=session or Session(), **more)
    return model


def with_batch_statistics(model, split):
    """Accuracy where batch norm uses the statistics of the batch that it is given."""
    for layer in batch_norms(model.eval()):
        layer.train()
        layer.track_running_stats = False
    with torch.no_grad():
        return float((model(split.x).argmax(1) == split.y).double().mean())


def test_after_40_steps_evaluation_mode_is_as_right_as_the_model_is():
    # with the running statistics that training leaves: 72.7 % in evaluation mode, 99.6 % with batch statistics
    model, test = fit(network()), blobs(2000, seed=1)
    accuracy, _ = measure(model, test, Session())
    assert accuracy == pytest.approx(with_batch_statistics(model, test), abs=0.02) and accuracy > 0.9


def test_a_pass_over_a_small_set_is_the_mean_over_its_samples():
    # batches of 4, 4 and 2: were they to count alike, samples of the last would count twice
    x = torch.tensor([0.0, 0, 0, 0, 0, 0, 0, 0, 10, 10]).reshape(10, 1)
    split, model = Split(x, torch.zeros(10, dtype=torch.long)), nn.BatchNorm1d(1)
    assert settle_batch_norm(model, Place(split, 4, "s", Session()), Passes())
    assert float(model.running_mean) == pytest.approx(2.0)  # 20 / 10
    assert model.momentum == 0.1


class Watched(nn.Module):
    """Remembers what it was shown."""

    def __init__(self):
        super().__init__()
        self.norm, self.seen = nn.BatchNorm2d(1), []

    def forward(self, x):
        self.seen.append(x.detach().clone())
        return self.norm(x).flatten(1)[:, :2]


def left_half(augment, mask=None, count=8):
    """Images that are white on their left half: mirrored ones are white on the right."""
    x = torch.zeros(count, 1, 2, 4, dtype=torch.uint8)
    x[..., :2] = 255
    return Split(x, torch.arange(count) % 2, mask=mask, augment=augment)


def mirrored(seen):
    return torch.cat(seen)[:, 0, 0, 3].mean().item()


@pytest.mark.parametrize(("augment", "share"), [(None, 0.0), (Augment(), 0.0), (Augment(flip=True), 0.5)])
def test_training_images_are_augmented_and_batch_norm_is_measured_on_such_images(augment, share):
    model, order, split = Watched(), Draws(torch.ones(800), steps=60), left_half(augment, count=800)
    train(model, split, Adam(batch_size=16), stage="s", session=Session(), objective=plain, order=order)
    # 800 images or more, each mirrored with probability 1/2: the standard error is 0.02
    assert mirrored(model.seen[:60]) == pytest.approx(share, abs=0.08)
    settled = model.seen[60:-1]  # the last pass asks whether there is a finite answer
    assert len(settled) == BATCHES == 50 and mirrored(settled) == pytest.approx(share, abs=0.08)


def test_batch_norm_is_measured_on_a_pass_over_few_samples_however_many_steps_were_trained():
    # 40 samples in batches of 16: 3 batches are a pass, whether the order counts epochs or draws without end
    for order in (Draws(torch.ones(40), steps=60), Passes()):
        model, recipe = Watched(), Adam(batch_size=16, epochs=20)
        train(model, left_half(None, count=40), recipe, stage="s", session=Session(), objective=plain, order=order)
        assert len(model.seen[60:-1]) == 3


def test_what_is_masked_is_masked_when_batch_norm_is_measured():
    hidden = torch.zeros(8, 2, 4, dtype=torch.bool)
    hidden[..., :2] = True  # all that is white
    model = Watched()
    settle_batch_norm(model, Place(left_half(None, BitMask.of(hidden)), 4, "s", Session()), Passes())
    assert float(model.norm.running_mean) == 0 and len(model.seen) == 2  # one pass


def test_batch_norm_is_measured_on_the_samples_as_they_are_drawn():
    model = nn.Sequential(nn.BatchNorm1d(1), nn.Dropout(0.5)).eval()
    split = Split(torch.tensor([[0.0], [10.0]]), torch.tensor([0, 1]))
    settle_batch_norm(model, Place(split, 256, "s", Session()), Draws(torch.tensor([0.2, 0.8])))
    # mean 0.8 * 10 = 8, variance 0.8 * 0.2 * 100 = 16; the standard errors over 50 * 256 draws are 0.035 and 0.25
    assert float(model[0].running_mean) == pytest.approx(8, abs=0.15)
    assert float(model[0].running_var) == pytest.approx(16, abs=0.5)
    assert model[0].momentum == 0.1 and not model[0].training


class Interrupt(Exception):
    pass


@pytest.mark.parametrize("at", [0.05, 0.5, 0.99])
@pytest.mark.parametrize("stage", ["erm", "erm: batch norm"])
@pytest.mark.parametrize("rules", [{}, {"until_accuracy": 1.0}])
def test_an_interruption_before_or_while_it_is_measured_leaves_the_same_bits(tmp_path, at, stage, rules):
    def stop(now, done):
        if now == stage and done >= at:
            raise Interrupt

    recipe = SGD(lr=0.05, epochs=2, batch_size=16, **rules)
    whole = fit(network(), recipe=recipe).state_dict()
    with pytest.raises(Interrupt):
        fit(network(), Session(folder=tmp_path, progress=stop), recipe)
    resumed = fit(network(), Session(folder=tmp_path), recipe).state_dict()
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())


def test_a_stage_that_has_ended_is_not_measured_again(tmp_path, monkeypatch):
    whole = fit(network(), Session(folder=tmp_path)).state_dict()
    monkeypatch.setattr(loop, "settle_batch_norm", lambda *_: pytest.fail("measured again"))
    again = fit(network(), Session(folder=tmp_path)).state_dict()
    assert all(torch.equal(value, again[name]) for name, value in whole.items())


def test_a_model_without_batch_norm_draws_no_further_batch():
    stages = set()
    fit(nn.Linear(16, 10), Session(progress=lambda stage, done: stages.add(stage)))
    assert stages == {"erm"}


def test_it_is_measured_on_no_more_batches_than_were_trained_on():
    model, order = Watched(), Draws(torch.ones(40), steps=3)  # a pass has ten batches
    split, recipe = left_half(None, count=40), Adam(batch_size=4)
    train(model, split, recipe, stage="s", session=Session(), objective=plain, order=order)
    assert len(model.seen) == 3 + 3 + 1  # the last asks whether there is a finite answer


def test_no_training_leaves_the_statistics_that_there_were():
    model = fit(network(), recipe=SGD(epochs=0))
    assert all(layer.num_batches_tracked == 0 for layer in batch_norms(model))


class Shared(nn.Module):
    """One normalisation that is passed twice, and one that is never reached."""

    def __init__(self):
        super().__init__()
        self.norm, self.never = nn.BatchNorm1d(1), nn.BatchNorm1d(1)
        self.never.running_mean.fill_(7.0)

    def forward(self, x):
        return self.norm(x) + self.norm(x + 10)


def test_a_layer_that_is_passed_twice_counts_both_and_one_that_is_not_reached_keeps_what_it_has():
    model, split = Shared(), Split(torch.ones(8, 1), torch.zeros(8, dtype=torch.long))
    settle_batch_norm(model, Place(split, 4, "s", Session()), Passes())
    assert float(model.norm.running_mean) == pytest.approx(6.0)  # (1 + 11) / 2
    assert float(model.never.running_mean) == 7.0


class Pair(nn.Module):
    """Two networks, of which one answers."""

    def __init__(self):
        super().__init__()
        self.networks = nn.ModuleList([nn.BatchNorm1d(1), nn.BatchNorm1d(1)])

    def forward(self, x):
        return self.networks[0](x)


def test_of_several_networks_each_is_measured():
    model, split = Pair(), Split(torch.ones(8, 1), torch.zeros(8, dtype=torch.long))
    settle_batch_norm(model, Place(split, 4, "s", Session()), Passes())
    assert [float(network.running_mean) for network in model.networks] == [1.0, 1.0]


def test_statistics_that_were_not_finite_are_forgotten():
    model, split = nn.BatchNorm1d(1), Split(torch.ones(8, 1), torch.zeros(8, dtype=torch.long))
    model.running_mean.fill_(torch.nan)
    settle_batch_norm(model, Place(split, 4, "s", Session()), Passes())
    assert float(model.running_mean) == 1.0


def test_a_stop_rule_judges_the_model_with_settled_statistics():
    # 97 % are right after two epochs; the running statistics, at momentum 0.01, show it after thirteen
    session = Session()
    fit(network(dropout=0.0), session, SGD(lr=0.05, epochs=30, batch_size=64, until_accuracy=0.97))
    assert len(session.history["erm"]) <= 4
    assert session.history["erm"][-1]["accuracy"] >= 0.97


class Judge(Carry):
    """Scores the model after each round."""

    judges = True

    def __init__(self, model, split):
        self.model, self.split = model, split

    def figures(self):
        return {"judged": measure(self.model, self.split, Session())[0]}


def test_what_judges_a_round_sees_settled_statistics_and_changes_no_weights():
    session, model, test = Session(), network(), blobs(500, seed=1)
    fit(model, session, carry=[Judge(model, test)])
    assert session.history["erm"][-1]["judged"] == measure(model, test, Session())[0] > 0.9
    alone = fit(network()).state_dict()
    assert all(torch.equal(value, alone[name]) for name, value in model.state_dict().items())


def test_the_batches_come_from_the_seed_and_leave_global_randomness_alone():
    before = torch.get_rng_state()
    split, found = blobs(6400), []
    for seed in (1, 1, 2):
        model = network()
        settle_batch_norm(model, Place(split, 16, "s", Session(seed=seed)), Passes())
        found.append(model[1].running_mean.clone())
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_outputs_after_training_are_those_of_evaluation_mode():
    model = fit(network())
    (_, logits), *_ = outputs(model, blobs(100))
    assert not model.training and logits.shape == (100, 10)
