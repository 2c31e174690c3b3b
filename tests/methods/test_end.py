import pytest
import torch
from torch import nn

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.errors import UnspurError
from unspur.methods import end
from unspur.methods.end import EnD, terms
from unspur.methods.erm import ERM
from unspur.models.base import with_features


def test_both_terms_are_means_over_pairs_written_as_a_loop():
    generator = torch.Generator().manual_seed(0)
    features, y, a = torch.randn(7, 4, generator=generator), torch.tensor([0, 0, 0, 1, 1, 1, 1]), [0, 0, 1, 1, 1, 0, 2]
    unit = [row / row.norm() for row in features]
    pairs = [(i, j) for i in range(7) for j in range(7) if i != j]
    # the same bias, whatever the class, and never a sample with itself
    apart = torch.stack([(unit[i] @ unit[j]).abs() for i, j in pairs if a[i] == a[j]]).mean()
    together = 1 - torch.stack([unit[i] @ unit[j] for i, j in pairs if a[i] != a[j] and y[i] == y[j]]).mean()
    found = terms(features, y, torch.tensor(a))
    assert torch.isclose(found[0], apart) and torch.isclose(found[1], together)


def test_features_of_one_bias_at_right_angles_and_of_one_class_in_line_cost_nothing():
    features = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 4.0]])
    found = terms(features, torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]))
    assert float(found[0]) == pytest.approx(0) and float(found[1]) == pytest.approx(0)


def test_opposite_features_are_not_apart_for_what_counts_is_the_magnitude():
    found = terms(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([0, 1]), torch.tensor([0, 0]))
    assert float(found[0]) == pytest.approx(1)


def test_a_batch_without_pairs_costs_nothing_and_has_a_gradient():
    features = torch.randn(2, 3, requires_grad=True)
    found = terms(features, torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert found[0].item() == 0 and found[1].item() == 0
    assert torch.isfinite(torch.autograd.grad(sum(found), features)[0]).all()


def test_the_weights_multiply_their_terms_alone(monkeypatch):
    data, model, found = shortcut(40), network(), {}
    monkeypatch.setattr(end, "train_model", lambda *given, **rest: found.update(rest))
    EnD(alpha=2.0, beta=3.0).fit(model, data)
    batch = data.batch(torch.arange(40))
    model.eval()
    features, logits = with_features(model, batch.x)
    apart, together = terms(features, data.y, data.attributes["told"])
    expected = nn.functional.cross_entropy(logits, data.y) + 2 * apart + 3 * together
    assert torch.isclose(found["objective"](model, batch, 0).loss, expected)


def test_conflicting_samples_are_classified_better_than_by_plain_training():
    data = shortcut()
    plain, fit = ERM(erm=PLAIN).fit(network(), data), EnD(training=PLAIN, alpha=1.0, beta=1.0).fit(network(), data)
    assert misled(fit) > misled(plain) + 0.1


def test_negative_weights_are_refused():
    with pytest.raises(UnspurError, match=r"alpha and beta must be from 0 but got -1\.0 and 0\.1"):
        EnD(alpha=-1.0)
