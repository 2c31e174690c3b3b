"""The weight dynamics of DCWP's Proposition 1 against integration of the gradient flow."""

import itertools
import math

import pytest
import torch

from unspur.errors import UnspurError
from unspur.theory.dcwp import (
    Start,
    biased_weight_ratio_lower,
    gradient_flow,
    invariant_weight_bounds,
    spurious_limit,
    spurious_weight_lower,
    weight_ratio_lower,
)

STARTS = [
    Start(0.9, 0.1, torch.tensor([0.1], dtype=torch.float64)),
    Start(0.7, 0.5, torch.tensor([0.05, 0.2, 0.4], dtype=torch.float64)),
    Start(0.99, 0.2, torch.linspace(0.05, 0.3, 8, dtype=torch.float64)),
    Start(0.9, 0.1, torch.tensor([1.05], dtype=torch.float64)),  # close to its limit, 1.0986
]
TIMES = torch.tensor([0.5, 3.0, 30.0, 1e3, 1e6], dtype=torch.float64)
starts = pytest.mark.parametrize("start", STARTS, ids=lambda start: f"p={start.p}, D={len(start.w_sp)}")


def exponential_loss(w, p):
    """E exp(-Y w^T X) over all 2^D spurious patterns."""
    total = torch.zeros((), dtype=torch.float64)
    for z in itertools.product((-1.0, 1.0), repeat=len(w) - 1):
        chance = math.prod(p if agrees > 0 else 1 - p for agrees in z)
        total = total + chance * torch.exp(-w[0] - w[1:] @ torch.tensor(z, dtype=torch.float64))
    return total


@starts
@pytest.mark.parametrize("t", [0.3, 20.0, 1e4])
def test_the_flow_descends_the_gradient_of_the_expected_exponential_loss(start, t):
    h = 1e-3 * t
    w_inv, w_sp = gradient_flow(start, torch.tensor([t - h, t, t + h], dtype=torch.float64))
    path = torch.cat([w_inv[:, None], w_sp], dim=1)
    here = path[1].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(exponential_loss(here, start.p), here)
    assert torch.allclose((path[2] - path[0]) / (2 * h), -gradient, rtol=1e-4, atol=0)


@starts
def test_the_flow_keeps_what_it_must_conserve(start):
    # dw_i/dw_inv = tanh(w* - w_i), so sinh(w* - w_i) e^w_inv never changes.
    w_inv, w_sp = gradient_flow(start, TIMES)
    now = torch.sinh(spurious_limit(start.p) - w_sp) * torch.exp(w_inv)[:, None]
    begun = torch.sinh(spurious_limit(start.p) - start.w_sp) * math.exp(start.w_inv)
    assert torch.allclose(now, begun.expand_as(now), rtol=1e-5)


@starts
def test_the_weights_stay_within_the_bounds_of_proposition_1(start):
    w_inv, w_sp = gradient_flow(start, TIMES)
    for t, inv, sp in zip(TIMES.tolist(), w_inv.tolist(), w_sp, strict=True):
        lower, upper = invariant_weight_bounds(start, t)
        assert lower <= inv <= upper
        assert (sp >= spurious_weight_lower(start, t, m=inv)).all()  # the sharpest M there is
        assert (sp >= spurious_weight_lower(start, t, m=upper)).all()
        assert (sp < spurious_limit(start.p)).all()
        for horizon in (t, 10 * t):
            assert (sp / inv >= weight_ratio_lower(start, t, horizon)).all()
            assert (weight_ratio_lower(start, t, horizon) > 0).all()


def test_the_spurious_bound_is_exact_where_its_two_estimates_are():
    # D = 1 has no other spurious weights to estimate, and over a short time w_inv = M: (39) is w_sp(t) to second order.
    start, t = STARTS[0], 1e-3
    _, w_sp = gradient_flow(start, torch.tensor([t], dtype=torch.float64))
    gained = w_sp[0] - start.w_sp
    assert torch.allclose(spurious_weight_lower(start, t, start.w_inv) - start.w_sp, gained, rtol=2e-3)
    assert gained > 5e-4  # dw/dt = e^-0.1 (0.9 e^-0.1 - 0.1 e^0.1) = 0.64


def test_equation_39_as_printed_is_no_bound():
    # tanh(artanh(x + y)) = x + y: the weight would pass its own limit.
    start, t = STARTS[3], 30.0
    w_inv, w_sp = gradient_flow(start, torch.tensor([t], dtype=torch.float64))
    x = math.sqrt((1 - start.p) / start.p) * math.exp(float(start.w_sp))
    y = math.exp(-float(w_inv)) * math.sqrt(start.p * (1 - start.p)) * t
    printed = spurious_limit(start.p) + math.log(x + y)
    assert printed > spurious_limit(start.p) > float(w_sp)
    # and even where x + y < 1 it can lie above the weight
    t = 0.05
    w_inv, w_sp = gradient_flow(start, torch.tensor([t], dtype=torch.float64))
    y = math.exp(-float(w_inv)) * math.sqrt(start.p * (1 - start.p)) * t
    assert x + y < 1
    assert spurious_limit(start.p) + math.log(x + y) > float(w_sp)
    assert float(spurious_weight_lower(start, t, float(w_inv))) < float(w_sp)


def test_in_infinite_time_the_spurious_weights_lose():
    w_inv, w_sp = gradient_flow(STARTS[1], torch.tensor([1e3, 1e6, 1e12], dtype=torch.float64))
    assert torch.allclose(w_sp[-1], torch.full((3,), spurious_limit(0.7), dtype=torch.float64), atol=1e-6)
    ratio = (w_sp / w_inv[:, None]).max(dim=1).values
    assert ratio[0] > ratio[1] > ratio[2]
    # w_inv = log([4 * 0.21]^(3/2) * 1e12) to leading order
    assert w_inv[-1] == pytest.approx(1.5 * math.log(0.84) + 12 * math.log(10), abs=1e-3)


def test_under_full_bias_the_ratio_stays_above_its_limit_bound():
    w_inv, w_sp, t = 0.2, torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64), 50.0
    bound = biased_weight_ratio_lower(w_inv, w_sp, t)
    gaps = []
    for p in (0.99, 0.9999, 0.999999):
        start = Start(p, w_inv, w_sp)
        inv, sp = gradient_flow(start, torch.tensor([t], dtype=torch.float64))
        assert (sp[0] / inv > bound).all()
        gaps.append(float((weight_ratio_lower(start, t, t) - bound).abs().max()))
    assert gaps[0] > gaps[1] > gaps[2]  # (41) tends to (42)
    assert gaps[2] < 1e-3
    # at p = 1 every weight has grown by log(1 + 4 * 50 e^(-0.2 - 0.6)) / 4
    grown = math.log(1 + 4 * t * math.exp(-0.8)) / 4
    assert torch.allclose(sp[0], w_sp + grown, atol=1e-3)
    assert inv[0] == pytest.approx(w_inv + grown, abs=1e-3)


def test_with_a_single_spurious_feature_the_bound_tends_to_more_than_the_starting_weight():
    # D = 1, p -> 1, M = 2, t = 3: log(e^0.5 + 3 e^-2), where the appendix has 0.5 for every D
    start = Start(1 - 1e-10, 0.1, torch.tensor([0.5], dtype=torch.float64))
    expected = math.log(math.exp(0.5) + 3 * math.exp(-2))
    assert float(spurious_weight_lower(start, t=3.0, m=2.0)) == pytest.approx(expected, abs=1e-6)


def test_a_start_outside_the_proposition_is_refused():
    with pytest.raises(UnspurError, match=r"above 0\.5 and below 1 but is 1\.0"):
        Start(1.0, 0.1, torch.tensor([0.1]))
    with pytest.raises(UnspurError, match=r"must start above 0 but starts at -0\.1"):
        Start(0.9, -0.1, torch.tensor([0.1]))
    with pytest.raises(UnspurError, match=r"between 0 and log\(p / \(1 - p\)\) / 2 = 1\.099"):
        Start(0.9, 0.1, torch.tensor([0.1, 1.2]))
    with pytest.raises(UnspurError, match="beyond the horizon"):
        weight_ratio_lower(STARTS[0], t=2.0, horizon=1.0)
    with pytest.raises(UnspurError, match="Times must increase"):
        gradient_flow(STARTS[0], torch.tensor([2.0, 1.0]))
