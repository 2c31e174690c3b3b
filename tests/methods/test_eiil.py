from dataclasses import replace

import pytest
import torch

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.errors import UnspurError
from unspur.methods import eiil
from unspur.methods.eiil import EIIL
from unspur.methods.erm import ERM
from unspur.parts.inferred_groups import all_logits
from unspur.parts.invariance import environments, slopes, soft_penalty
from unspur.parts.mining import mining_quality
from unspur.train.recipe import SGD
from unspur.train.session import Session

QUICK = EIIL(erm=SGD(lr=0.05, epochs=2, batch_size=64), training=PLAIN, lr=0.05, steps=200)


def test_the_soft_penalty_is_the_squared_gradient_by_a_scale_of_the_logits_in_two_environments():
    generator = torch.Generator().manual_seed(0)
    logits, y, share = torch.randn(8, 3, generator=generator), torch.arange(8) % 3, torch.rand(8, generator=generator)
    scale, total = torch.ones((), requires_grad=True), 0.0
    for belongs in (share, 1 - share):
        # a sum over all samples by 8, whatever the environment's own size
        risk = sum(-belongs[i] * (scale * logits[i]).log_softmax(0)[y[i]] for i in range(8)) / 8
        total += float(torch.autograd.grad(risk, scale)[0] ** 2)
    assert float(soft_penalty(share, slopes(logits, y))) == pytest.approx(total, rel=1e-5)


def test_assignments_rise_to_the_split_by_the_sign_of_the_slope_which_no_other_split_exceeds():
    slope = torch.tensor([-0.3, -0.2, -0.4, 1.5, 0.7, -0.1])
    found = environments(
        slope, torch.randn(6, generator=torch.Generator().manual_seed(3)), 0.05, 500, lambda done: None
    )
    assert found.tolist() in ((slope > 0).tolist(), (slope < 0).tolist())
    every = [torch.tensor([(number >> bit) & 1 for bit in range(6)]).float() for number in range(64)]
    assert float(soft_penalty(found.float(), slope)) == pytest.approx(max(float(soft_penalty(q, slope)) for q in every))


def test_the_brief_model_is_frozen_while_the_data_are_split_and_the_result_begins_again():
    still = replace(QUICK, training=SGD(epochs=0)).fit(network(), shortcut())
    for value, first in zip(still.model.state_dict().values(), network().state_dict().values(), strict=True):
        assert torch.equal(value, first)


def test_the_split_is_made_with_the_methods_own_rate_and_all_of_its_steps(monkeypatch):
    given = []
    monkeypatch.setattr(eiil, "environments", lambda *args: given.append(args[2:4]) or torch.arange(600) < 50)
    replace(QUICK, training=SGD(epochs=0), lr=0.003, steps=700).fit(network(), shortcut())
    assert given == [(0.003, 700)]


def test_the_environment_with_the_higher_loss_is_mined_and_holds_the_conflicting_samples():
    data = shortcut()
    plain, fit = ERM(erm=PLAIN).fit(network(), data), QUICK.fit(network(), data)
    losses = torch.nn.functional.cross_entropy(all_logits(fit.stages["erm"], data, Session()), data.y, reduction="none")
    assert losses[fit.mining.train].mean() > losses[~fit.mining.train].mean()
    quality = mining_quality(fit.mining.train.nonzero().squeeze(1), data)
    assert quality["recall"] > 0.8 and misled(fit) > misled(plain) + 0.2


def test_irm_takes_the_environments_themselves_and_not_their_labels(monkeypatch):
    given = []
    monkeypatch.setattr(eiil, "train_annealed", lambda *args: given.append(args))
    fit = replace(QUICK, on="irm", anneal=5, lam=50.0).fit(network(), shortcut())
    (args,) = given
    assert torch.equal(args[3], fit.mining.train.long()) and args[5:7] == ((1.0, 50.0), 5)


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(UnspurError, match="on must be groupdro or irm but got 'dro'"):
        EIIL(on="dro")
    with pytest.raises(UnspurError, match=r"erm.epochs must be at least 1 but got 0"):
        EIIL(erm=SGD(epochs=0))
    with pytest.raises(UnspurError, match="lr must be above 0 and lam from 0 but got 0 and 100"):
        EIIL(lr=0)
    with pytest.raises(UnspurError, match="anneal must be at least 0 but got -5"):
        EIIL(anneal=-5)
    with pytest.raises(UnspurError, match="full weight after 500 steps, but the training has 27"):
        replace(QUICK, on="irm").fit(network(), shortcut())


def test_the_slope_is_that_of_the_loss_by_a_scale_also_where_the_model_is_confident():
    # raising all logits of a sample changes no loss; in the difference of two products it cost 40 % of the signs
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(400) % 2
    logits = torch.randn(400, 2, generator=generator)
    logits[torch.arange(400), y] += 16 * (1 - 2 * (torch.arange(400) < 20).float())
    exact = ((logits.double().softmax(1) - torch.nn.functional.one_hot(y)) * logits.double()).sum(1)
    assert torch.equal((slopes(logits + 1, y) > 0), (exact > 0))


def test_a_confident_models_data_are_split_by_its_mistakes_and_not_by_the_random_start():
    # margins of 12: gradients of the assignments are below Adam's epsilon unless slopes are brought to one size
    generator = torch.Generator().manual_seed(0)
    y, n = torch.zeros(2000, dtype=torch.long), 2000
    margin = 12 + torch.randn(n, generator=generator)
    margin[:100] *= -1  # what the model is wrong about
    slope = slopes(torch.stack([margin, torch.zeros(n)], 1).double(), y)
    start = torch.randn(n, generator=generator)
    first = environments(slope, start, 1e-2, 2000, lambda done: None)
    mistakes = first if first[:100].float().mean() > 0.5 else ~first
    assert mistakes[:100].all() and mistakes[100:].float().mean() < 0.15


def test_an_inferred_group_of_one_sample_is_told(monkeypatch):
    alone = torch.arange(600) == int((shortcut().y == 1).nonzero()[0])
    alone |= (torch.arange(600) < 300) & (shortcut().y == 0)
    monkeypatch.setattr(eiil, "environments", lambda *args: alone)
    fit = replace(QUICK, training=SGD(epochs=0)).fit(network(), shortcut())
    assert any(said.startswith("Of 4 inferred groups 1 has a single training sample") for said in fit.warnings)
