import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from unspur.metrics.dynamics import (
    MeanLosses,
    early_loss_ratio,
    logit_norm,
    loss_ratio,
    max_loss_ratio,
    mean_losses,
    parameter_norm,
)


def batch(n=50):
    generator = torch.Generator().manual_seed(0)
    losses = torch.rand(n, generator=generator).requires_grad_()
    return losses, torch.rand(n, generator=generator) < 0.2


def test_loss_ratio_equals_a_loop_over_samples():
    losses, conflicting = batch()
    total = sum(losses.tolist())
    expected = sum(v for v, c in zip(losses.tolist(), conflicting, strict=True) if c) / total
    assert loss_ratio(losses, conflicting) == pytest.approx(expected)


def test_loss_ratio_is_of_sums_over_the_whole_batch():
    # 4 / (4 + 1 + 3) = 1/2; over the aligned alone 1, of means 4 / (8/3)
    assert loss_ratio(torch.tensor([4.0, 1.0, 3.0]), torch.tensor([True, False, False])) == 0.5


def test_loss_ratio_without_conflicting_samples_is_0_and_without_loss_unknown():
    assert loss_ratio(torch.tensor([1.0, 2.0]), torch.tensor([False, False])) == 0
    assert loss_ratio(torch.tensor([0.0, 0.0]), torch.tensor([True, False])) is None


def test_scaled_logits_let_mispredicted_conflicting_samples_take_over_the_loss():
    # Proposition 1: one conflicting sample predicted as its bias, nine aligned ones predicted rightly
    logits = torch.tensor([[2.0, 0.0]]).repeat(10, 1)
    y = torch.tensor([1] + [0] * 9)
    ratios = [loss_ratio(cross_entropy(k * logits, y, reduction="none"), y == 1) for k in (0.0, 1.0, 4.0)]
    assert ratios[0] == pytest.approx(0.1) and ratios[0] < ratios[1] < ratios[2] and ratios[2] > 0.99


def test_the_maximum_ignores_steps_without_a_ratio():
    assert max_loss_ratio([None, 0.2, 0.9, None, 0.1]) == 0.9
    assert max_loss_ratio(iter([None])) is None
    assert max_loss_ratio([]) is None


def test_the_early_ratio_counts_steps_not_epochs_and_none_after_the_first_ones():
    # (0 + 0 + 0.9) / 3 = 0.3; the mean of epochs' means would be 0.45, and the sixth epoch is left out
    epochs = [[0.0, 0.0, None], [0.9], [], [None], [], [1.0]]
    assert early_loss_ratio(epochs) == pytest.approx(0.3)
    assert early_loss_ratio([[None], []]) is None


def test_mean_losses_equal_numpys():
    losses, conflicting = batch()
    values, chosen = losses.detach().double().numpy(), conflicting.numpy()
    result = mean_losses(losses, conflicting)
    assert result.aligned == pytest.approx(np.mean(values[~chosen]))
    assert result.conflicting == pytest.approx(np.mean(values[chosen]))
    assert result.ratio == pytest.approx(np.mean(values[~chosen]) / np.mean(values[chosen]))


def test_mean_loss_of_nobody_is_unknown():
    none = torch.tensor([False, False])
    assert mean_losses(torch.tensor([1.0, 3.0]), none) == (2.0, None)
    assert mean_losses(torch.tensor([1.0, 3.0]), none).ratio is None
    assert mean_losses(torch.tensor([1.0, 3.0]), ~none).ratio is None
    assert MeanLosses(1.0, 0.0).ratio is None


def test_parameter_norm_is_that_of_one_long_vector():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    everything = torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()
    assert parameter_norm(model) == pytest.approx(np.linalg.norm(everything), rel=1e-6)
    assert parameter_norm(nn.Flatten()) == 0


def test_logit_norm_is_a_mean_over_samples():
    logits = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    expected = np.mean([np.linalg.norm(row) for row in logits.detach().numpy()])
    assert logit_norm(logits) == pytest.approx(expected, rel=1e-6)
