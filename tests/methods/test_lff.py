from dataclasses import replace

import pytest
import torch
from torch import nn

from methods.shortcuts import misled, network, shortcut
from unspur.data.base import Batch, Split
from unspur.errors import UnspurError
from unspur.methods import lff
from unspur.methods.erm import ERM
from unspur.methods.lff import LfF
from unspur.parts.difficulty import RelativeDifficulty
from unspur.parts.mining import mining_quality
from unspur.train.moments import Minimised, Moment
from unspur.train.recipe import SGD

RECIPE = SGD(lr=0.02, epochs=12, batch_size=64)
QUICK = LfF(training=RECIPE)


def caught(monkeypatch, method, model, data):
    """The pair that a method trains, its objective and what it carries along."""
    found = {}

    def train_model(pair, *given, objective, carry, **rest):
        found.update(pair=pair.train(), objective=objective, difficulty=carry[0])

    with monkeypatch.context() as patch:
        patch.setattr(lff, "train_model", train_model)
        method.fit(model, data)
    return found


def test_the_objective_is_algorithm_1_written_as_a_loop(monkeypatch):
    data = Split(torch.randn(8, 3, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 0, 1, 0, 0, 1, 1]))
    found = caught(monkeypatch, LfF(q=0.7, decay=0.7), nn.Linear(3, 2), data)
    pair, difficulty = found["pair"], found["difficulty"]
    known = torch.rand(2, 8, generator=torch.Generator().manual_seed(2))
    difficulty.losses, difficulty.seen = known.clone(), torch.arange(8) != 6
    batch = data.batch(torch.tensor([0, 1, 4, 6]))
    loss = found["objective"](pair, batch, 0).loss
    smoothed, own = known.clone(), {}
    for place, number in enumerate(batch.index.tolist()):
        for row, net in enumerate((pair.helper, pair.kept)):
            own[row, place] = -net(batch.x[place]).log_softmax(0)[batch.y[place]]
            kept = 0.0 if number == 6 else 0.7  # sample 6 is seen for the first time
            smoothed[row, number] = kept * known[row, number] + (1 - kept) * own[row, place].detach()
    for place, (number, label) in enumerate(zip(batch.index.tolist(), batch.y.tolist(), strict=True)):
        # divided by the largest of the class over the whole training set, and not over the batch
        hard = [smoothed[row, number] / max(smoothed[row, k] for k in range(8) if data.y[k] == label) for row in (0, 1)]
        weight = hard[0] / (hard[0] + hard[1])
        easy = (1 - (-own[0, place]).exp() ** 0.7) / 0.7
        assert torch.isclose(loss[place], weight * own[1, place] + easy)


def test_neither_network_learns_from_the_others_loss_nor_from_the_weights(monkeypatch):
    data = Split(torch.randn(6, 3, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 0, 1, 0, 1]))
    found = caught(monkeypatch, LfF(), nn.Linear(3, 2), data)
    pair, batch = found["pair"], data.batch(torch.arange(6))
    losses = found["objective"](pair, batch, 0)
    slope = torch.autograd.grad(losses.loss.sum(), pair.kept.weight)[0]
    weight = found["difficulty"].of_batch(losses.for_carry["losses"], batch)
    plain = nn.functional.cross_entropy(pair.kept(batch.x), batch.y, reduction="none")
    assert torch.allclose(slope, torch.autograd.grad((weight.detach() * plain).sum(), pair.kept.weight)[0])


def test_a_samples_first_loss_counts_in_full_and_later_ones_by_one_minus_decay(monkeypatch):
    data = Split(torch.zeros(4, 1), torch.tensor([0, 1, 0, 1]))
    difficulty = caught(monkeypatch, LfF(decay=0.7), nn.Linear(1, 2), data)["difficulty"]
    batch = Batch(data.x[:2], data.y[:2], torch.tensor([1, 3]))
    # 1 as it is, then 0.7 x 1 + 0.3 x 2 = 1.3; samples 0 and 2 are not seen
    for new, expected in ((1.0, 1.0), (2.0, 1.3)):
        found = Minimised(torch.zeros(()), for_carry={"losses": torch.full((2, 2), new)})
        difficulty.see(Moment(nn.Identity(), "", 0, 0, data, batch, found))
        assert torch.allclose(difficulty.losses, torch.tensor([[0.0, expected, 0.0, expected]] * 2))
    resumed = caught(monkeypatch, LfF(decay=0.7), nn.Linear(1, 2), data)["difficulty"]
    resumed.load(difficulty.state())
    assert torch.equal(resumed.smoothed(torch.zeros(2, 2), batch), difficulty.smoothed(torch.zeros(2, 2), batch))
    assert resumed.seen.tolist() == [False, True, False, True]


def test_a_sample_that_both_find_as_hard_has_weight_one_half_whatever_the_class_is(monkeypatch):
    data = Split(torch.zeros(4, 1), torch.tensor([0, 0, 1, 1]))
    difficulty = caught(monkeypatch, LfF(), nn.Linear(1, 2), data)["difficulty"]
    # class 1 is ten times as hard for the biased network throughout, which says nothing of its samples
    weights = difficulty.weights(torch.tensor([[0.2, 0.1, 20.0, 10.0], [0.4, 0.2, 4.0, 2.0]]))
    assert torch.allclose(weights, torch.full((4,), 0.5))
    # 3/4 of the class's largest against 1/4: 0.75
    assert torch.isclose(difficulty.weights(torch.tensor([[4.0, 3, 1, 1], [4.0, 1, 1, 1]]))[1], torch.tensor(0.75))


def test_conflicting_samples_are_found_and_classified_better_than_by_plain_training():
    data = shortcut()
    plain, fit = ERM(erm=RECIPE).fit(network(), data), QUICK.fit(network(), data)
    assert misled(fit) > misled(plain) + 0.2
    quality = mining_quality(fit.mining.train.nonzero().squeeze(1), data)
    assert quality["recall"] > 0.8  # of the 30 of 600


def test_the_biased_network_is_a_stage_and_no_repair_of_itself():
    fit = replace(QUICK, training=SGD(epochs=0)).fit(network(), shortcut())
    assert fit.baseline.stage == "biased" and fit.baseline.role == "student"


def test_settings_that_are_no_shares_are_refused():
    with pytest.raises(UnspurError, match=r"q must lie in \(0, 1\] but got 0"):
        LfF(q=0.0)
    with pytest.raises(UnspurError, match=r"decay must lie in \[0, 1\) but got 1"):
        LfF(decay=1.0)


def test_what_a_checkpoint_holds_goes_to_the_device_that_trains():
    # the device "meta" stands for any that a file's tensors are not on
    difficulty = RelativeDifficulty(torch.zeros(4, dtype=torch.long), 0.7, torch.device("meta"))
    difficulty.load({"losses": torch.ones(2, 4), "seen": torch.ones(4).bool()})
    assert difficulty.losses.device == difficulty.seen.device == difficulty.y.device
