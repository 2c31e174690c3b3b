"""DCWP's bounds against Monte Carlo where they are below 1, its Lemma 1 and its simulation."""

import itertools
import math

import pytest
import torch

from unspur.errors import UnspurError
from unspur.theory.dcwp import (
    bias_curves,
    debiasing_weight,
    expected_cosine,
    mixture_bound,
    pruned_error,
    training_bound,
    unbiased_bound,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def error(pi_inv, pi_sp, alpha, p, samples=20_000):
    return pruned_error(pi_inv, pi_sp, alpha, p, samples=samples, generator=generator())


# Hoeffding's inequality is sharp in the exponent for many +-1 terms with a small mean. D = 400, alpha = 1 and
# agreement 0.55 with everything kept: mean 1 + 0.1 * 400 = 41, bound 2 exp(-2 * 41^2 / 1601) = 0.245, error about
# Phi(-41 / 20) = 0.02. Without the 4 it would be 2 exp(-2 * 41^2 / 401) = 0.0005, with p for 2p - 1 below e^-50.
MANY = torch.ones(400)

# The unbiased bound is below 1 only for sum alpha^2 < 0.471. 15 * 0.15^2 = 0.3375: 2 exp(-2 / 2.35) = 0.854. The error
# is P(1 + 0.15 sum Z < 0) = P(at least 11 of 15 are -1) = (1365 + 455 + 105 + 15 + 1) / 2^15 = 0.0592.
FEW = torch.full((15,), 0.15)


def test_the_simulated_error_is_the_exact_one_with_ties_at_one_half():
    # Enumerate all masks and inputs for D = 2; alpha = (1, 0.5) makes ties (1 - 1, and the mask that keeps nothing).
    pi_inv, pi_sp, alpha, p = 0.5, torch.tensor([0.7, 0.4]), torch.tensor([1.0, 0.5]), 0.8
    exact = 0.0
    for m0, m1, m2, z1, z2 in itertools.product((0, 1), (0, 1), (0, 1), (-1, 1), (-1, 1)):
        chance = 0.5 * (0.7 if m1 else 0.3) * (0.4 if m2 else 0.6) * math.prod(p if z > 0 else 1 - p for z in (z1, z2))
        score = m0 + 1.0 * m1 * z1 + 0.5 * m2 * z2
        exact += chance * (1 - (score > 0) + (score < 0)) / 2
    # 200,000 draws: standard error below 0.0012; ties alone add more than 0.045
    assert error(pi_inv, pi_sp, alpha, p, samples=200_000) == pytest.approx(exact, abs=0.005)


@pytest.mark.parametrize(
    ("pi_inv", "pi_sp", "alpha", "p"),
    [
        (1.0, MANY, MANY, 0.55),  # bound 0.245, error 0.02
        (1.0, MANY, MANY, 0.54),  # mean 33: bound 0.513, error 0.05
        (0.9, 0.5 * MANY, MANY, 0.6),  # half are pruned, mean 0.9 + 0.2 * 200 = 40.9: bound 0.247
        (1.0, torch.ones(15), torch.ones(15), 0.9),  # mean 13: bound 0.0078, error about 2e-5
    ],
)
def test_the_training_bound_holds_where_it_is_below_1(pi_inv, pi_sp, alpha, p):
    bound = training_bound(pi_inv, pi_sp, alpha, p)
    assert bound < 0.6
    assert error(pi_inv, pi_sp, alpha, p) < bound


def test_the_training_bound_is_sharp_enough_to_fail_for_a_smaller_range_of_the_terms():
    found = error(1.0, MANY, MANY, 0.55)
    assert training_bound(1.0, MANY, MANY, 0.55) == pytest.approx(2 * math.exp(-2 * 41**2 / 1601), rel=1e-5)
    assert 0.015 < found < 0.025
    assert found > 2 * math.exp(-2 * 41**2 / 401)


def test_the_unbiased_bound_holds_and_the_training_bound_does_not_hold_there():
    found = error(1.0, torch.ones(15), FEW, 0.5, samples=100_000)
    assert found == pytest.approx(1941 / 2**15, abs=0.004)
    assert found < unbiased_bound(1.0, FEW) < 0.86
    # The gap: the training bound at p = 0.99 promises 2 exp(-2 (1 + 0.98 * 2.25)^2 / 2.35) = 0.0003.
    assert found > training_bound(1.0, torch.ones(15), FEW, 0.99)


def test_the_unbiased_bound_holds_when_the_invariant_weight_may_be_pruned():
    # pi_inv = 0.7 and almost no spurious weight: 2 exp(-0.98 / 1.02) = 0.765; pruned, it is a coin toss: error 0.15
    alpha = torch.full((2,), 0.05)
    assert error(0.7, torch.ones(2), alpha, 0.5) == pytest.approx(0.15, abs=0.01)
    assert error(0.7, torch.ones(2), alpha, 0.5) < unbiased_bound(0.7, alpha) < 0.77


def test_the_mixture_bound_holds_for_features_drawn_one_by_one_but_not_for_whole_samples():
    # p = 0.9, phi = 7/18: agreement 0.9 * 11/18 = 0.55, the numbers above. Drawing whole samples, 7 in 18 have every
    # spurious feature against the label, and all of these go wrong: error 0.39.
    p, phi = 0.9, 7 / 18
    bound = mixture_bound(1.0, MANY, MANY, p, phi)
    assert bound == pytest.approx(2 * math.exp(-2 * 41**2 / 1601), rel=1e-4)
    assert error(1.0, MANY, MANY, p * (1 - phi)) < bound
    whole = phi * error(1.0, MANY, MANY, 0.0) + (1 - phi) * error(1.0, MANY, MANY, p)
    assert whole == pytest.approx(phi, abs=1e-3)
    assert whole > bound


def test_at_its_largest_weight_the_mixture_is_unbiased():
    for p in (0.6, 0.9, 1.0):
        phi = debiasing_weight(p)
        assert p * (1 - phi) == pytest.approx(0.5)
        assert mixture_bound(0.9, torch.ones(15), FEW, p, phi) == pytest.approx(unbiased_bound(0.9, FEW))
    assert error(1.0, torch.ones(15), FEW, 0.9 * (1 - debiasing_weight(0.9))) < unbiased_bound(1.0, FEW) < 0.86


def test_the_bounds_refuse_what_they_do_not_hold_for():
    with pytest.raises(UnspurError, match=r"from 0\.5 to 1 but is 0\.4"):
        training_bound(1.0, MANY, MANY, 0.4)
    with pytest.raises(UnspurError, match=r"from 0 to 1 - 1/\(2p\) = 0\.4444 but is 0\.5"):
        mixture_bound(1.0, MANY, MANY, 0.9, 0.5)
    with pytest.raises(UnspurError, match="must not be negative"):
        unbiased_bound(1.0, -FEW)
    with pytest.raises(UnspurError, match="must be from 0 to 1"):
        training_bound(1.0, 2 * MANY, MANY, 0.9)


def embeddings(matrix, p, n, seed):
    spurious = torch.where(torch.rand(n, matrix.shape[1] - 1, generator=generator(seed)) < p, 1.0, -1.0)
    return torch.cat([torch.ones(n, 1), spurious], dim=1).double() @ matrix.T


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_lemma_1_for_an_embedding_with_orthonormal_columns_only(q):
    columns = torch.linalg.qr(torch.randn(32, 16, generator=generator(), dtype=torch.float64)).Q  # W^T W = 1
    cosine = torch.nn.functional.cosine_similarity(
        embeddings(columns, 0.9, 50_000, seed=1), embeddings(columns, q, 50_000, seed=2)
    )
    assert float(cosine.mean()) == pytest.approx(expected_cosine(15, 0.9, q), abs=0.01)
    # (43): 1/16 whatever p is; (44): (1 + 15 * 0.64) / 16
    assert expected_cosine(15, 0.9, q) == pytest.approx({0.5: 1 / 16, 0.9: 10.6 / 16}[q])


def test_lemma_1_fails_for_an_embedding_with_orthonormal_rows():
    # Keep the spurious coordinates alone (4 x 16, W W^T = 1): the cosine across environments is 0, not 1/16.
    rows = torch.eye(16, dtype=torch.float64)[1:5]
    cosine = torch.nn.functional.cosine_similarity(
        embeddings(rows, 0.9, 50_000, seed=1), embeddings(rows, 0.5, 50_000, seed=2)
    )
    assert abs(float(cosine.mean())) < 0.01 < expected_cosine(15, 0.9, 0.5) - 0.05


def test_the_weight_ratio_rises_to_1_and_unbiased_accuracy_falls_as_the_bias_grows():
    curves = bias_curves()
    assert curves.weight_ratio.shape == curves.unbiased_accuracy.shape == (6, 15)
    ratio, accuracy = curves.weight_ratio.mean(1), curves.unbiased_accuracy.mean(1)
    assert (ratio.diff() > 0).all()
    assert ratio[0] < 0.1  # p = 0.6
    assert ratio[-1] == pytest.approx(1.0, abs=0.15)  # p = 0.99; the rate was picked for it
    assert (accuracy.diff() < 0).all()
    assert accuracy[0] > 0.99
    # 16 equal weights: right if at most 7 of 15 are -1, a tie at 8: 1/2 + C(15, 8) / 2^15 / 2 = 0.598
    assert accuracy[-1] == pytest.approx(0.598, abs=0.02)


@pytest.mark.parametrize("lr", [0.01, 1.0])
def test_the_weight_ratio_rises_at_other_rates_too(lr):
    ratio = bias_curves(p=(0.6, 0.8, 0.99), seeds=3, lr=lr).weight_ratio.mean(1)
    assert (ratio.diff() > 0).all() and ratio[-1] > 0.7


def test_a_seed_gives_the_same_curve_whatever_else_is_simulated():
    few = bias_curves(p=(0.9,), seeds=2, epochs=5)
    many = bias_curves(p=(0.6, 0.9), seeds=3, epochs=5)
    assert torch.allclose(few.weight_ratio[0], many.weight_ratio[1, :2])
    assert torch.equal(few.unbiased_accuracy[0], many.unbiased_accuracy[1, :2])


def test_one_epoch_is_one_step_down_the_binary_cross_entropy():
    # With labels 0/1 and inputs +-1, by autograd, from the same draws.
    draws = generator(0)
    w = ((2 * torch.rand(4, generator=draws) - 1) / 2).requires_grad_()
    agrees = torch.rand(64, 3, generator=draws) < 0.8
    label = torch.arange(64) % 2
    sign = (2.0 * label - 1)[:, None]
    x = torch.cat([sign, torch.where(agrees, sign, -sign)], dim=1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ w, label.float())
    (gradient,) = torch.autograd.grad(loss, w)
    after = (w - 0.3 * gradient).detach()
    curves = bias_curves(p=(0.8,), dim=3, seeds=1, epochs=1, samples=64, lr=0.3)
    assert float(curves.weight_ratio) == pytest.approx(float(after[1:].mean() / after[0]), rel=1e-4)
