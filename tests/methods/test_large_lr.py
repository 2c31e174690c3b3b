import pytest
import torch
from torch import nn

import unspur.methods.large_lr as large_lr
from unspur.data.base import Split
from unspur.errors import Diverged
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
    trained = []

    def train(model, train, recipe, *, stage, seed, session):
        trained.append((stage, recipe.lr, model[0].weight.sum().item()))
        with torch.no_grad():
            model[0].weight.add_(recipe.lr)
        if fails.get(recipe.lr) == "diverges":
            raise Diverged(stage, 7)
        # the probe's best accuracy is 0.9: 0.64 is more than 25 points below it, 0.66 is not
        session.history[stage] = [{"accuracy": 0.64 if fails.get(recipe.lr) == "is lost" else 0.66}]

    monkeypatch.setattr(large_lr, "train_model", train)
    monkeypatch.setattr(large_lr, "highest_rate", lambda *args, **more: ([0.4, 0.2, 0.1], TRIALS))
    return trained


@pytest.mark.parametrize("failure", ["diverges", "is lost"])
def test_a_rate_that_fails_later_gives_way_to_the_next_lower_one(monkeypatch, failure):
    trained = rigged(monkeypatch, {0.4: failure})
    fit = LargeLR().fit(model(), split())
    assert [(stage, lr) for stage, lr, _ in trained] == [("erm", 0.4), ("erm-2", 0.2)]
    assert trained[0][2] == trained[1][2]  # both began with the same weights
    assert (fit.facts["lr"], fit.facts["stage"]) == (0.2, "erm-2") and [
        entry["lr"] for entry in fit.facts["given_up"]
    ] == [0.4]


def test_divergence_at_every_rate_is_divergence(monkeypatch):
    rigged(monkeypatch, dict.fromkeys((0.1, 0.2, 0.4), "diverges"))
    with pytest.raises(Diverged, match="stage 'erm-3'"):
        LargeLR().fit(model(), split())
