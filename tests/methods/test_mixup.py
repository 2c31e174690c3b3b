import pytest
import torch

from methods.shortcuts import PLAIN, network, shortcut
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.methods.mixup import Mixup


def caught(monkeypatch, method, data):
    """The objective that a method trains with."""
    found = []
    monkeypatch.setattr(
        f"{type(method).__module__}.train_model", lambda *args, objective, **rest: found.append(objective)
    )
    method.fit(network(), data)
    return found[0]


def test_inputs_and_labels_are_mixed_with_the_same_share(monkeypatch):
    data = shortcut()
    objective, batch = caught(monkeypatch, Mixup(alpha=1.0), data), data.batch(torch.arange(6))
    seen = []

    def model(x):
        seen.append(x)
        return torch.stack([x[:, 0], -x[:, 0]], 1)

    torch.manual_seed(3)
    loss = objective(model, batch, 0).loss
    torch.manual_seed(3)
    partner, share = torch.randperm(6), torch.distributions.Beta(1.0, 1.0).sample()
    x = share * batch.x + (1 - share) * batch.x[partner]
    assert torch.allclose(seen[0], x, atol=1e-6)
    log = torch.stack([x[:, 0], -x[:, 0]], 1).log_softmax(1)
    rows = torch.arange(6)
    expected = -share * log[rows, batch.y] - (1 - share) * log[rows, batch.y[partner]]
    assert torch.allclose(loss, expected, atol=1e-5)


def test_answers_are_less_certain_than_after_plain_training():
    data = shortcut()
    plain = ERM(erm=PLAIN).fit(network(), data).model
    fit = Mixup(training=PLAIN, alpha=2.0).fit(network(), data).model
    assert fit(data.x).softmax(1).amax(1).mean() < plain(data.x).softmax(1).amax(1).mean() - 0.02


def test_a_share_that_cannot_be_drawn_is_refused():
    with pytest.raises(UnspurError, match=r"alpha must be a number above 0 but got 0"):
        Mixup(alpha=0.0)
