import pytest
import torch

from unspur.errors import UnspurError
from unspur.theory.masktune import (
    fit_pair,
    fits,
    min_norm,
    min_norm_masked,
    predicted_agreement,
    predicted_gap,
    predictions,
)

SIZES = [(1, 2), (5, 9), (12, 13), (20, 60)]  # (samples, features); (12, 13): z has as many features as samples


def problem(n, d, seed=0):
    """A random training set: z (n, d - 1), s (n,), y (n,)."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in [(n, d - 1), (n,), (n,)])


def new_samples(d, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(50, d - 1, generator=generator, dtype=torch.float64)


def close(a, b):
    return torch.allclose(a, b, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_the_min_norm_model_fits_and_nothing_shorter_does(n, d):
    z, _, y = problem(n, d)
    theta = min_norm(z, y)
    assert close(z @ theta, y)
    # Every other solution differs by a vector that z maps to zero; theta is orthogonal to all of these.
    null = new_samples(d) @ (torch.eye(d - 1, dtype=torch.float64) - torch.linalg.pinv(z) @ z)
    assert (null @ theta).abs().max() < 1e-7


@pytest.mark.parametrize(("n", "d"), [(5, 20), (12, 40)])
def test_masking_the_same_features_everywhere_never_makes_the_least_complex_model_simpler(n, d):
    # Proposition 1: the masked model fits the raw samples as well, so that the first choice could have had it.
    for seed in range(20):
        z, _, y = problem(n, d, seed)
        hidden = torch.randperm(d - 1, generator=torch.Generator().manual_seed(seed))[: d // 4]
        keep = torch.ones(d - 1, dtype=torch.float64).index_fill(0, hidden, 0)
        first, final = min_norm(z, y), min_norm_masked(z, y, keep)
        assert fits(final, z, y) and not final[hidden].abs().max() > 1e-9
        assert final.norm() > first.norm()  # equal only if the first gave the hidden features no weight


def test_masks_that_differ_by_sample_never_make_it_simpler_either_while_both_fit_the_raw_samples():
    # Each sample has two of its features hidden; their raw values are such that the masked model gives them 0 together:
    # a * w1 + b * w2 = 0 for (a, b) = (w2, -w1).
    for seed in range(20):
        z, _, y = problem(5, 20, seed)
        hidden = torch.stack(
            [torch.randperm(19, generator=torch.Generator().manual_seed(9 * seed + i))[:2] for i in range(5)]
        )
        keep = torch.ones_like(z).scatter(1, hidden, 0)
        final = min_norm_masked(z, y, keep)
        raw = z.scatter(1, hidden, torch.stack([final[hidden[:, 1]], -final[hidden[:, 0]]], 1))
        first = min_norm(raw, y)
        assert fits(final, raw, y) and fits(first, raw, y) and not close(first, final)
        assert final.norm() > first.norm()


def test_a_masked_model_that_does_not_fit_the_raw_samples_may_be_simpler():
    # The condition that both fit the training data is needed. (1, 0) and (1, 0.1) with targets 1 and -1 take
    # theta = (1, -20); with the second sample's first feature hidden, (1, -10) does, which misses the raw -1 by 1.
    x, y = torch.tensor([[1.0, 0.0], [1.0, 0.1]], dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64)
    keep = torch.tensor([[1, 1], [0, 1]])
    first, final = min_norm(x, y), min_norm_masked(x, y, keep)
    assert close(first, torch.tensor([1.0, -20.0], dtype=torch.float64)) and fits(first, x, y)
    assert close(final, torch.tensor([1.0, -10.0], dtype=torch.float64)) and fits(final, x * keep, y)
    assert not fits(final, x, y) and final.norm() < first.norm()


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_where_the_masked_feature_is_predictable_the_models_agree(n, d):
    z_train, s_train, y = problem(n, d)
    pair = fit_pair(z_train, s_train, y)
    z = new_samples(d)
    s = z @ z_train.T @ torch.linalg.inv(z_train @ z_train.T) @ s_train  # the proposition's right-hand side
    with_s, without_s = predictions(pair, z, s)
    assert close(with_s, without_s)
    assert predicted_agreement(pair, z, s, tolerance=1e-6).all()


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_where_the_models_agree_the_masked_feature_is_predictable(n, d):
    z_train, s_train, y = problem(n, d)
    pair = fit_pair(z_train, s_train, y)
    assert pair.w.abs() > 1e-3
    z = new_samples(d)
    # The one s at which the two fitted models agree, from their predictions and nothing else:
    s = (z @ pair.theta_without - z @ pair.theta_with) / pair.w
    assert close(s, z @ z_train.T @ torch.linalg.inv(z_train @ z_train.T) @ s_train)


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_elsewhere_they_differ_by_the_weight_times_the_surprise(n, d):
    z_train, s_train, y = problem(n, d)
    pair = fit_pair(z_train, s_train, y)
    z = new_samples(d)
    s = z @ pair.beta + torch.linspace(0.5, 3, 50, dtype=torch.float64)
    with_s, without_s = predictions(pair, z, s)
    assert close(with_s - without_s, predicted_gap(pair, z, s))
    assert close(with_s - without_s, pair.w * torch.linspace(0.5, 3, 50, dtype=torch.float64))
    assert not predicted_agreement(pair, z, s).any()


def test_a_model_that_ignores_the_masked_feature_agrees_even_where_the_printed_proposition_denies_it():
    z_train, s_train, y = problem(5, 9)
    # Make beta^T theta_without = S^T (Z Z^T)^-1 Y vanish: take from Y its part along S in that inner product.
    inverse = torch.linalg.inv(z_train @ z_train.T)
    y = y - s_train * (s_train @ inverse @ y) / (s_train @ inverse @ s_train)
    pair = fit_pair(z_train, s_train, y)
    assert pair.w.abs() < 1e-12
    z = new_samples(9)
    s = z @ pair.beta + 1.0  # never what z predicts
    assert close(*predictions(pair, z, s))
    assert predicted_agreement(pair, z, s).all()


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_the_weight_of_the_masked_feature_follows_from_the_model_without_it(n, d):
    pair = fit_pair(*problem(n, d))
    assert close(pair.w, pair.beta @ pair.theta_without / (1 + pair.beta @ pair.beta))


def test_more_samples_than_features_are_refused():
    # 6 samples of 5 features beside s: the model without s cannot fit them
    with pytest.raises(UnspurError, match="6 samples of 5 features are not linearly independent"):
        fit_pair(*problem(6, 6))
