import math

import pytest
import torch
from torch.nn import functional

from unspur.errors import UnspurError
from unspur.theory.large_lr import (
    gradient_ratio_rate,
    log_gradient_norms,
    log_gradient_ratio,
    log_loss_ratio,
    log_loss_ratio_limit,
    margins,
)

# Rows: two conflicting samples (wrong by 1 and 2), three aligned ones (right by 1.5, 1.5 and 4).
LOGITS = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.5, 0.0], [0.5, 2.0], [2.0, -2.0]], dtype=torch.float64)
Y = torch.tensor([1, 0, 0, 1, 0])
CONFLICTING = torch.tensor([True, True, False, False, False])


def slope(curve, low, high):
    return (curve(high) - curve(low)) / (high - low)


def test_the_loss_ratio_is_that_of_cross_entropy():
    for k in (0.5, 1.0, 5.0):
        loss = functional.cross_entropy(k * LOGITS, Y, reduction="none")
        expected = (loss[CONFLICTING].sum() / loss[~CONFLICTING].sum()).log()
        assert log_loss_ratio(LOGITS, Y, k) == pytest.approx(float(expected), abs=1e-9)


def test_the_loss_ratio_approaches_its_limit():
    # (1 + 2) k / (2 e^(-1.5 k)): at k = 20, log 60 - log 2 + 30
    assert log_loss_ratio_limit(LOGITS, Y, 20) == pytest.approx(math.log(60) - math.log(2) + 30)
    gaps = [abs(log_loss_ratio(LOGITS, Y, k) - log_loss_ratio_limit(LOGITS, Y, k)) for k in (2, 5, 20, 1000)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.04
    assert gaps[2] < 1e-8


def test_the_loss_ratio_grows_like_k_times_an_exponential_of_the_least_aligned_margin():
    # log ratio - log k is a line of slope 1.5 (the least margin; the mean is 7/3), log ratio alone is steeper by
    # log(2) / 20 between k = 20 and 40
    assert slope(lambda k: log_loss_ratio(LOGITS, Y, k) - math.log(k), 20, 40) == pytest.approx(1.5, abs=1e-8)
    assert slope(lambda k: log_loss_ratio(LOGITS, Y, k), 20, 40) == pytest.approx(1.5 + math.log(2) / 20, abs=1e-8)
    # far beyond the range of floats
    assert slope(lambda k: log_loss_ratio(LOGITS, Y, k) - math.log(k), 2000, 4000) == pytest.approx(1.5, abs=1e-8)


class Decomposed:
    """A bias-decomposable network (Definition 1) on (core, spurious) inputs; its core part saturates where |core| > 1.

    Binary logits +-f/2 with f = hardtanh(c . core) + s . spurious: saturated, the core has no gradient at all.
    """

    def __init__(self, leak=0.0):
        self.c = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
        self.s = torch.tensor([3.0, 1.0], dtype=torch.float64, requires_grad=True)
        self.leak = leak

    def __call__(self, core, spurious):
        core = self.c * core
        score = functional.hardtanh(core)[:, 0] + self.leak * core[:, 0] + spurious @ self.s
        return torch.stack([score / 2, -score / 2], dim=1)

    def jacobian(self, parameter, core, spurious):
        logits = self(core, spurious)
        rows = [[torch.autograd.grad(z, parameter, retain_graph=True)[0] for z in row] for row in logits]
        return torch.stack([torch.stack(row) for row in rows])


# y = 0 throughout: the core says class 0. Two conflicting samples with a saturated core, two aligned ones without.
CORE = torch.tensor([[2.0], [3.0], [0.5], [0.25]], dtype=torch.float64)
SPURIOUS = torch.tensor([[-1.0, 0.0], [-1.0, -1.0], [1.0, 0.0], [0.5, 0.5]], dtype=torch.float64)
CLASS = torch.zeros(4, dtype=torch.long)
# scores: 1 - 3 = -2, 1 - 4 = -3, 0.5 + 3 = 3.5, 0.25 + 2 = 2.25: the least aligned margin is 2.25


def ratio(network, k):
    core, spurious = (network.jacobian(part, CORE, SPURIOUS) for part in (network.c, network.s))
    return log_gradient_ratio(network(CORE, SPURIOUS).detach(), CLASS, core, spurious, k)


def test_gradient_norms_are_those_of_autograd():
    network = Decomposed(leak=0.1)
    for k in (0.5, 2.0, 6.0):
        losses = functional.cross_entropy(k * network(CORE, SPURIOUS), CLASS, reduction="none")
        for parameter in (network.c, network.s):
            expected = [torch.autograd.grad(loss, parameter, retain_graph=True)[0].norm() for loss in losses]
            jacobian = network.jacobian(parameter, CORE, SPURIOUS)
            found = log_gradient_norms(network(CORE, SPURIOUS).detach(), CLASS, jacobian, k).exp()
            assert torch.allclose(found, torch.stack(expected), rtol=1e-9)


def test_the_spurious_gradient_outgrows_the_core_gradient_by_an_exponential_of_the_margin():
    network = Decomposed()
    assert gradient_ratio_rate(network(CORE, SPURIOUS).detach(), CLASS) == 2.25
    assert slope(lambda k: ratio(network, k), 20, 40) == pytest.approx(2.25, abs=1e-6)
    assert slope(lambda k: ratio(network, k), 1000, 2000) == pytest.approx(2.25, abs=1e-6)


def test_conflicting_samples_dominate_the_spurious_gradient_linearly_in_k():
    # Eq. 15: k |grad_s (f[b] - f[y])| = k |spurious| = k and k sqrt(2)
    network = Decomposed()
    jacobian = network.jacobian(network.s, CORE, SPURIOUS)
    for k in (30.0, 60.0):
        norms = log_gradient_norms(network(CORE, SPURIOUS).detach(), CLASS, jacobian, k).exp()
        assert norms[:2].tolist() == pytest.approx([k, k * math.sqrt(2)])
        assert norms[2:].max() < 1e-20


def test_a_core_that_has_not_quite_converged_ends_the_growth():
    # On conflicting samples grad_c = leak * core = 2e-6 and 3e-6: the ratio tends to (1 + sqrt 2) / 5e-6.
    limit = math.log((1 + math.sqrt(2)) / 5e-6)
    network = Decomposed(leak=1e-6)
    assert ratio(network, 3) < limit - 3  # it still grows: e^(2.25 * 3) is far below 1e6
    assert ratio(network, 20) == pytest.approx(limit, abs=1e-6)
    assert ratio(network, 40) == pytest.approx(limit, abs=1e-6)


def test_a_third_class_close_behind_the_shortcut_sets_the_rate():
    # Sample 0 conflicts (y = 0, b = 1), class 2 is 0.5 behind b; sample 1 is aligned by 2. The core's gradients of f[0]
    # and f[1] are equal (Definition 1), that of f[2] differs: rate 0.5, where the proof would have 2.
    logits = torch.tensor([[0.0, 2.0, 1.5], [2.0, 0.0, 0.0]], dtype=torch.float64)
    y = torch.tensor([0, 0])
    core = torch.tensor([[[1.0], [1.0], [3.0]], [[1.0], [-1.0], [0.0]]])
    spurious = torch.tensor([[[0.0], [1.0], [0.0]], [[1.0], [0.0], [0.0]]])
    assert gradient_ratio_rate(logits, y) == 0.5
    found = slope(lambda k: log_gradient_ratio(logits, y, core, spurious, k), 50, 100)
    assert found == pytest.approx(0.5, abs=1e-6)


def test_a_batch_without_conflicting_samples_or_with_ties_is_refused():
    with pytest.raises(UnspurError, match="0 are predicted wrongly and 3 rightly"):
        margins(LOGITS[~CONFLICTING], Y[~CONFLICTING])
    with pytest.raises(UnspurError, match="Of 2 samples 1 are predicted wrongly and 0 rightly"):
        gradient_ratio_rate(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([1, 1]))


def test_three_classes_are_refused_by_proposition_1():
    with pytest.raises(UnspurError, match=r"shape \(5, 3\)"):
        log_loss_ratio(torch.zeros(5, 3), torch.zeros(5, dtype=torch.long), 1.0)
