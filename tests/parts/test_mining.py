import copy
import dataclasses

import pytest
import torch
from torch import nn

from unspur.core.seeds import seeded
from unspur.data.augment import Augment
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.parts.mining import GCE, EarlyStopped, EpochEnsemble, mining_quality, require_both, upweighted, wrong
from unspur.train.loop import outputs
from unspur.train.loop import train as train_model
from unspur.train.losses import confident_cross_entropy
from unspur.train.recipe import Adam
from unspur.train.session import Session

QUICK = Adam(lr=0.01, epochs=2, batch_size=64)


def shortcut(n=400, conflicting=20, seed=0):
    """Two classes, a strong feature that gives them away but for a few samples, and weak ones that hold for all."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=generator)
    told = y.clone()
    told[:conflicting] = 1 - told[:conflicting]
    noise = torch.randn(n, 6, generator=generator)
    weak = noise + 0.3 * (2 * y - 1).unsqueeze(1)
    x = torch.cat([4.0 * (2 * told - 1).unsqueeze(1), weak], 1)
    return Split(x, y, {"told": told})


def network():
    with seeded(0, "network"):
        return nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 2))


def small(miner):
    return dataclasses.replace(miner, training=QUICK)


@pytest.mark.parametrize("miner", [GCE(), EarlyStopped(), EpochEnsemble(score=0.5)], ids=lambda miner: miner.name)
def test_what_the_shortcut_does_not_explain_is_mined_in_training_and_validation_data(miner):
    train, val = shortcut(), shortcut(seed=1)
    mined = small(miner).mine(network(), train, val, session=Session())
    for found, split in ((mined.train, train), (mined.val, val)):
        quality = mining_quality(found.nonzero().squeeze(1), split)
        assert quality["precision"] > 0.9 and quality["recall"] > 0.6


@pytest.mark.parametrize("miner", [GCE(), EarlyStopped(), EpochEnsemble()], ids=lambda miner: miner.name)
def test_mining_looks_at_images_without_augmentation(miner):
    # Shifted by up to 3 of 8 pixels the one lit pixel would be anywhere; unmoved it is always in the middle.
    x = torch.zeros(60, 1, 8, 8, dtype=torch.uint8)
    x[:, 0, 4, 4] = 255
    train = Split(x, torch.arange(60) % 2, augment=Augment(pad=3))
    seen = {True: [], False: []}

    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(64, 2)

        def forward(self, x):
            seen[self.training].append(x.detach()[:, 0, 4, 4])
            return self.last(x.flatten(1))

    miner = dataclasses.replace(miner, training=dataclasses.replace(QUICK, batch_size=20))
    miner.mine(Watched(), train, None, session=Session())
    assert torch.cat(seen[False]).eq(1).all() and not torch.cat(seen[True]).eq(1).all()


def test_without_validation_data_none_is_mined():
    assert small(GCE()).mine(network(), shortcut(), None, session=Session()).val is None


def test_gce_mines_by_its_own_loss():
    # Long enough to memorise with cross-entropy; the generalised loss gives up what it cannot explain.
    long = Adam(lr=0.05, epochs=60, batch_size=64)
    miners = [dataclasses.replace(miner, training=long) for miner in (GCE(), EarlyStopped())]
    mined = {m.name: m.mine(network(), shortcut(), None, session=Session()) for m in miners}
    assert mined["gce"].train[:20].sum() > mined["erm"].train[:20].sum()


def test_the_ensemble_averages_over_the_epochs_ends():
    train, scores = shortcut(), []
    for epochs in (1, 2, 3):  # the first of three epochs is the same as an only one
        model = network()
        recipe = Adam(lr=0.02, epochs=epochs, batch_size=64)
        train_model(model, train, recipe, stage="mining", session=Session(), loss=confident_cross_entropy(0.05))
        probability = torch.cat([logits for _, logits in outputs(model, train)]).softmax(1)
        scores.append(1 - probability[torch.arange(len(train)), train.y])
    mean, last = torch.stack(scores).mean(0), scores[-1]
    ensemble = EpochEnsemble(score=0.4, training=Adam(lr=0.02, epochs=3, batch_size=64))
    mined = ensemble.mine(network(), train, None, session=Session()).train
    assert torch.equal(mined, mean > 0.4) and not torch.equal(mined, last > 0.4)


def test_the_ensembles_score_is_one_minus_the_labels_probability():
    # With a rate of next to nothing every epoch scores alike.
    train, model = shortcut(), network()
    still = EpochEnsemble(score=0.5, training=Adam(lr=1e-30, epochs=3, batch_size=64))
    mined = still.mine(copy.deepcopy(model), train, None, session=Session())
    # 1 - p(label) > 0.5 in two classes is a wrong prediction
    assert torch.equal(mined.train, wrong(model, train, Session()))


def test_the_ensemble_judges_with_batch_norm_that_has_been_measured_again():
    # At a small momentum the running means of a short training are mostly their initial values.
    train = shortcut()
    train = Split(train.x + 5, train.y)
    with seeded(0, "network"):
        model = nn.Sequential(nn.Linear(7, 32), nn.BatchNorm1d(32, momentum=0.001), nn.ReLU(), nn.Linear(32, 2))
    ensemble = EpochEnsemble(score=0.5, training=Adam(lr=0.02, epochs=1, batch_size=64))
    mined = ensemble.mine(model, train, None, session=Session())
    # After one epoch of two classes, a score above 1/2 is a wrong prediction of the network that is returned.
    assert torch.equal(mined.train, wrong(model, train, Session()))


@pytest.mark.parametrize("at", [0.4, 0.75, 0.95])
def test_an_interrupted_ensemble_mines_the_same(at, tmp_path):
    train, val = shortcut(), shortcut(seed=1)
    miner = EpochEnsemble(score=0.3, training=Adam(lr=0.02, epochs=4, batch_size=64))
    whole = miner.mine(network(), train, val, session=Session())

    class Interrupt(Exception):
        pass

    def stop(stage, done):
        if done > at:
            raise Interrupt

    with pytest.raises(Interrupt):
        miner.mine(network(), train, val, session=Session(folder=tmp_path, progress=stop))
    resumed = miner.mine(network(), train, val, session=Session(folder=tmp_path))
    assert torch.equal(resumed.train, whole.train) and torch.equal(resumed.val, whole.val)
    assert 0 < whole.train.sum() < len(train)


def test_upweighting_by_group_is_equation_14():
    mined, loss = torch.tensor([True, False, True, False, False]), torch.tensor([1.0, 2.0, 3.0, 5.0, 8.0])
    # lambda_up / 2 * (1 + 3) + 1 / 3 * (2 + 5 + 8) = 4 * 2 + 5 = 13 with lambda_up = 4; the shares sum to 1, hence / 5
    assert float(upweighted(mined, 4, "group") @ loss.double()) == pytest.approx(13 / 5)


def test_upweighting_by_sample_draws_each_mined_sample_so_many_times_as_often():
    mined = torch.zeros(55_000, dtype=torch.bool)
    mined[:491] = True
    shares = upweighted(mined, 80)
    assert float(shares[0] / shares[-1]) == pytest.approx(80)
    # 80 * 491 = 39,280 of 39,280 + 54,509 draws: 41.9 % (by group it would be 80 / 81)
    assert float(shares[mined].sum()) == pytest.approx(0.4188, abs=1e-4)


def test_a_factor_of_one_draws_all_samples_alike():
    assert upweighted(torch.tensor([True, False, False, False]), 1).tolist() == [0.25] * 4


def test_nothing_mined_and_everything_mined_say_what_to_do():
    with pytest.raises(UnspurError, match=r"found no bias-conflicting sample among 3.*Train it less"):
        require_both(torch.zeros(3, dtype=torch.bool))
    with pytest.raises(UnspurError, match=r"took all 3 samples.*Train it more"):
        require_both(torch.ones(3, dtype=torch.bool))
    require_both(torch.tensor([True, False]))


def test_quality_is_unknown_without_attributes():
    assert mining_quality(torch.tensor([0]), shortcut().without_attributes()) == {"precision": None, "recall": None}
    assert mining_quality(torch.tensor([], dtype=torch.long), shortcut()) == {"precision": None, "recall": 0.0}


@pytest.mark.parametrize("q", [0.0, -0.5, 1.5, float("nan")])
def test_q_outside_its_range_is_refused(q):
    with pytest.raises(UnspurError, match=r"mining.q must lie in \(0, 1\]"):
        GCE(q=q)


@pytest.mark.parametrize("wrong", [{"score": 1.0}, {"confidence": 1.0}])
def test_thresholds_outside_their_range_are_refused(wrong):
    with pytest.raises(UnspurError, match=rf"mining.{next(iter(wrong))}.* must"):
        EpochEnsemble(**wrong)


@pytest.mark.parametrize("miner", [GCE, EarlyStopped, EpochEnsemble])
def test_a_model_that_is_not_trained_cannot_mine(miner):
    with pytest.raises(UnspurError, match=r"mining.training.epochs must be at least 1 but got 0"):
        miner(training=Adam(epochs=0))
