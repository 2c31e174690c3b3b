from dataclasses import replace

import pytest
import torch
from torch import nn

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.methods import ula
from unspur.methods.erm import ERM
from unspur.methods.ula import ULA, log_prior
from unspur.models.base import with_features
from unspur.parts.inferred_groups import BestRound
from unspur.parts.mining import mining_quality
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.train.recipe import SGD, Adam

QUICK = ULA(training=PLAIN, proxy=Adam(lr=0.01, epochs=3, batch_size=64))


def trainings(monkeypatch, method, model, data, val=None):
    """What a method trains, in order, the first of them in earnest."""
    calls, real = [], ula.train_model

    def train_model(network, split, recipe, **rest):
        calls.append((network, split, rest))
        if rest["stage"] == "proxy":
            real(network, split, recipe, **rest)

    monkeypatch.setattr(ula, "train_model", train_model)
    return calls, method.fit(model, data, val=val)


def test_the_objective_adds_tau_times_the_log_prior_written_as_a_loop(monkeypatch):
    data, model = shortcut(64, 8), network()
    calls, _ = trainings(monkeypatch, replace(QUICK, tau=1.5, temperature=2.0), model, data)
    head, features, _ = calls[0]
    chance = (head(features.x) / 2).softmax(1).detach()
    answer = chance.argmax(1)
    assert chance.max(1).values.min() < 0.9  # or counting answers would come to the same
    batch = data.batch(torch.arange(10))
    model.eval()
    found = calls[1][2]["objective"](model, batch, 0).loss
    for i in range(10):
        row = [1 + sum(float(chance[j, answer[i]]) for j in range(64) if data.y[j] == k) for k in (0, 1)]
        logits = model(batch.x)[i] + 1.5 * (torch.tensor(row) / sum(row)).log()
        assert torch.isclose(found[i], -logits.log_softmax(0)[batch.y[i]], atol=1e-5)


def test_the_head_learns_from_the_features_that_the_network_begins_with(monkeypatch):
    data, model = shortcut(64, 8), network()
    calls, _ = trainings(monkeypatch, QUICK, model, data)
    first = network().eval()
    assert torch.allclose(calls[0][1].x, with_features(first, data.x)[0], atol=1e-5)
    assert isinstance(calls[0][0], nn.Linear)
    for value, start in zip(model.state_dict().values(), first.state_dict().values(), strict=True):
        assert torch.equal(value, start)  # the proxy's training has not changed it


def test_what_answers_is_the_network_without_the_prior():
    # one input, whose answer is always class 0, labels 3 to 1: the prior explains all, and the network stays even
    x, y = torch.ones(400, 1), torch.tensor([0, 0, 0, 1] * 100)
    gently = SGD(lr=0.1, epochs=40, batch_size=40)
    fit = ULA(training=gently, proxy=Adam(lr=0.1, epochs=5)).fit(nn.Linear(1, 2), Split(x, y))
    assert torch.allclose(fit.model(torch.ones(1, 1)).softmax(1)[0], torch.tensor([0.5, 0.5]), atol=0.03)


def test_with_tau_0_it_is_plain_training():
    plain, fit = ERM(erm=PLAIN).fit(network(), shortcut()), replace(QUICK, tau=0.0).fit(network(), shortcut())
    assert misled(fit) == pytest.approx(misled(plain), abs=0.1)


def test_conflicting_samples_are_found_and_classified_better_than_by_plain_training():
    data = shortcut()
    plain, fit = ERM(erm=PLAIN).fit(network(), data), QUICK.fit(network(), data, val=shortcut(200, 10, seed=5))
    assert misled(fit) > misled(plain) + 0.1 and fit.facts["mean_inferred_groups"] > 0.5
    assert mining_quality(fit.mining.train.nonzero().squeeze(1), data)["recall"] > 0.8


def test_a_pair_that_never_occurs_is_not_impossible():
    assert torch.isfinite(log_prior(torch.eye(3)[[0, 0]], torch.tensor([0, 0]))).all()


def test_the_round_is_chosen_by_labels_with_the_heads_answers(monkeypatch):
    data, val, model, seen = shortcut(64, 8), shortcut(40, 10, seed=5), network(), []
    monkeypatch.setattr(ula, "BestRound", lambda *given, **rest: seen.append(given) or BestRound(*given, **rest))
    long = replace(QUICK, proxy=Adam(lr=0.1, epochs=20, batch_size=16))  # until both answers occur for both labels
    calls, _ = trainings(monkeypatch, long, model, data, val)
    head, _, _ = calls[0]
    answer = head(with_features(network().eval(), val.x)[0]).argmax(1)
    pairs = {(int(y), int(a)): int(g) for y, a, g in zip(val.y, answer, seen[0][2], strict=True)}
    assert len(pairs) == len(set(pairs.values())) == 4  # each pair of label and answer is a group


def test_a_run_from_scratch_says_that_its_head_read_features_of_an_untrained_network(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    quick = ["data.base=mini", "data.val=9900", "arch.width=8", "training.epochs=1", "proxy.epochs=1"]
    scratch = configure("ula", "biased_mnist", "fcn", 0, quick)
    said = "ula reads the features of an untrained network: the weights of fcn are random; use a pretrained network"
    result = run(scratch, tmp_path)
    assert result["status"] == "done" and sum(said in warning for warning in result["warnings"]) == 1
    weights = Run.create(tmp_path, scratch).folder / "model.safetensors"
    result = run(configure("ula", "biased_mnist", "fcn", 0, [*quick, f"arch.weights={weights}"]), tmp_path)
    assert result["status"] == "done" and not any("untrained" in warning for warning in result["warnings"])


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(UnspurError, match="tau must be a number from 0 but got -1"):
        ULA(tau=-1.0)
    with pytest.raises(UnspurError, match="temperature must be a number above 0 but got 0"):
        ULA(temperature=0.0)
