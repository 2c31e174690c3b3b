import pytest
import torch

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.errors import UnspurError
from unspur.methods.cvar_dro import CVaRDRO, worst_mean
from unspur.methods.erm import ERM


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.25, 0.5, 0.99, 1.0])
def test_the_objective_is_the_largest_mean_over_all_weights_of_at_most_one_over_alpha_n(alpha):
    # the definition of CVaR: max of <q, losses> over q that sum to 1 with q <= 1 / (alpha n), filled from the worst
    losses = torch.rand(30, generator=torch.Generator().manual_seed(0))
    cap, left, expected = 1 / (alpha * 30), 1.0, 0.0
    for loss in sorted(losses.tolist(), reverse=True):
        expected += min(cap, left) * loss
        left -= min(cap, left)
    assert float(worst_mean(losses, alpha)) == pytest.approx(expected, rel=1e-5)


def test_a_share_of_less_than_one_sample_is_the_worst_one_and_not_nothing():
    assert float(worst_mean(torch.tensor([1.0, 5.0, 2.0]), 0.1)) == 5.0


def test_all_samples_are_the_plain_mean():
    assert float(worst_mean(torch.tensor([1.0, 5.0, 3.0]), 1.0)) == pytest.approx(3.0)


def test_conflicting_samples_are_classified_better_than_by_plain_training():
    plain, fit = ERM(erm=PLAIN).fit(network(), shortcut()), CVaRDRO(training=PLAIN).fit(network(), shortcut())
    assert misled(plain) < 0.1 and misled(fit) > misled(plain) + 0.2


def test_a_share_of_nothing_is_refused():
    with pytest.raises(UnspurError, match=r"alpha must lie in \(0, 1\] but got 0"):
        CVaRDRO(alpha=0.0)
