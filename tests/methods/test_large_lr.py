import pytest
import torch
from torch import nn

import unspur.methods.large_lr as large_lr
from unspur.data.base import Split
from unspur.errors import Diverged, UnspurError
from unspur.methods.large_lr import LargeLR
from unspur.train.probe import Probe, Trial
from unspur.train.recipe import SGD
from unspur.train.session import Session

TRIALS = [Trial(0.1, 0.9, 0.3, True), Trial(0.2, 0.9, 0.3, True), Trial(0.4, 0.8, 0.5, True)]


def split(n=60):
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(0))
    return Split(x, (x[:, 0] > 0).long())


def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def test_it_trains_at_the_highest_rate_that_converges():
    method = LargeLR(erm=SGD(lr=0.05, epochs=3, batch_size=20, momentum=0.0), probe=Probe(steps=6, tries=4))
    session = Session()
    fit = method.fit(model(), split(), session=session)
    usable = Probe().usable([Trial(**trial) for trial in fit.facts["probe"]])
    assert fit.facts["lr"] == usable[-1] > 0.05
    assert {line["lr"] for line in session.history["erm"]} == {fit.facts["lr"]}


def rigged(monkeypatch, fails):
    """Trials as above, and trainings that fail in the given way at the given rates."""
    trained, ended = [], []

    def train(model, train, recipe, *, stage, session):
        trained.append((stage, recipe.lr, model[0].weight.sum().item()))
        with torch.no_grad():
            model[0].weight.add_(recipe.lr)
        if fails.get(recipe.lr) == "diverges":
            raise Diverged(stage, 7)
        ended[:] = [fails.get(recipe.lr)]

    def judge(probe, model, split, lr, session):
        if ended == ["is constant"]:
            return Trial(lr, 0.8, 0.69, False)
        # the probe's best accuracy is 0.9: 0.64 is more than 25 points below it, 0.66 is not
        return Trial(lr, 0.64 if ended == ["is lost"] else 0.66, 0.5, True)

    monkeypatch.setattr(large_lr, "train_model", train)
    monkeypatch.setattr(Probe, "judge", judge)
    monkeypatch.setattr(large_lr, "highest_rate", lambda *args, **more: ([0.4, 0.2, 0.1], TRIALS))
    return trained


@pytest.mark.parametrize("failure", ["diverges", "is lost", "is constant"])
def test_a_rate_that_fails_later_gives_way_to_the_next_lower_one(monkeypatch, failure):
    trained = rigged(monkeypatch, {0.4: failure})
    fit = LargeLR().fit(model(), split())
    assert [(stage, lr) for stage, lr, _ in trained] == [("erm", 0.4), ("erm-2", 0.2)]
    assert trained[0][2] == trained[1][2]  # both began with the same weights
    assert (fit.facts["lr"], fit.trained) == (0.2, "erm-2") and [entry["lr"] for entry in fit.facts["given_up"]] == [
        0.4
    ]


def test_divergence_at_every_rate_is_divergence(monkeypatch):
    rigged(monkeypatch, dict.fromkeys((0.1, 0.2, 0.4), "diverges"))
    with pytest.raises(Diverged, match="stage 'erm-3'"):
        LargeLR().fit(model(), split())


def test_a_constant_answer_at_every_rate_is_an_error(monkeypatch):
    rigged(monkeypatch, dict.fromkeys((0.1, 0.2, 0.4), "is constant"))
    with pytest.raises(UnspurError, match=r"Even at 0\.1, .* the training ended with a constant answer"):
        LargeLR().fit(model(), split())


def test_a_result_below_the_probe_at_every_rate_is_kept_with_a_warning(monkeypatch):
    rigged(monkeypatch, dict.fromkeys((0.1, 0.2, 0.4), "is lost"))
    fit = LargeLR().fit(model(), split())
    assert fit.facts["lr"] == 0.1 and len(fit.facts["given_up"]) == 2
    assert fit.warnings == [
        "It fitted 0.6400 of the training samples, the probe 0.9000. No lower rate had passed the probe; begin with a "
        "lower erm.lr."
    ]
    rigged(monkeypatch, {0.4: "is lost"})
    assert not LargeLR().fit(model(), split()).warnings


def test_no_rate_is_chosen_that_kills_the_network_where_one_class_is_frequent():
    x = torch.randn(600, 20, generator=torch.Generator().manual_seed(0))
    data = Split(x, (x[:, 0] > -0.77).long())  # 78 % of one class
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        deep = nn.Sequential(*[nn.Linear(20, 20), nn.ReLU()] * 2, nn.Linear(20, 2))
    method = LargeLR(erm=SGD(lr=0.02, epochs=6, batch_size=50, momentum=0.0), probe=Probe(steps=40))
    fit = method.fit(deep, data)
    assert any(not trial["learned"] for trial in fit.facts["probe"])  # rates that do were tried
    assert len(fit.model(x).argmax(1).unique()) == 2


def test_a_rate_from_which_the_probe_cannot_fall_far_enough_is_refused_at_once():
    # 16 halvings are a factor of 65,536: from 1e30 to 1.5e25
    with pytest.raises(UnspurError, match=r"From erm.lr=1e\+30 the probe could fall to 1.5e\+25 at the least"):
        LargeLR(erm=SGD(lr=1e30))
