import itertools

import pytest
import torch

from unspur.parts.feature_distances import WIDTHS, coral, mmd, resplit


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    group = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 0])  # sizes 4, 3, 2, and not in order
    return torch.randn(9, 5, generator=generator) * (1 + group[:, None]) + group[:, None], group


def pairs(x, group):
    return itertools.combinations([x[group == g] for g in group.unique()], 2)


def test_coral_is_the_mean_over_pairs_of_squared_differences_of_means_and_covariances(batch):
    x, group = batch
    # torch.cov divides by n - 1; dividing by n, or leaving pairs out, gives other numbers
    expected = [
        (a.mean(0) - b.mean(0)).square().mean() + (a.T.cov() - b.T.cov()).square().mean() for a, b in pairs(x, group)
    ]
    assert torch.isclose(coral(x, group), torch.stack(expected).mean(), rtol=1e-5)


def test_coral_alone_of_covariances_is_not_all_there_is():
    # the same cloud moved by 3: covariances agree, and the squared distance of the means is 9
    x = torch.tensor([[0.0], [1.0], [3.0], [4.0]])
    assert float(coral(x, torch.tensor([0, 0, 1, 1]))) == pytest.approx(9.0)


def test_coral_keeps_its_digits_where_features_are_large_and_differ_little(batch):
    x, group = batch
    far = 0.01 * x + 100
    assert float(coral(far, group)) == pytest.approx(float(coral(far.double(), group)), rel=1e-4)


def test_mmd_is_the_double_loop_over_samples_and_widths(batch):
    x, group = batch

    def mean_kernel(a, b):
        values = [sum(torch.exp(-w * (u - v).square().sum()) for w in WIDTHS) for u in a for v in b]
        return torch.stack(values).mean()

    expected = [mean_kernel(a, a) + mean_kernel(b, b) - 2 * mean_kernel(a, b) for a, b in pairs(x, group)]
    assert torch.isclose(mmd(x, group), torch.stack(expected).mean(), rtol=1e-4)


def test_the_kernels_have_the_widths_of_the_paper():
    assert tuple(10.0**power for power in range(-3, 4)) == WIDTHS


@pytest.mark.parametrize("distance", [coral, mmd])
def test_a_distance_is_never_negative_and_zero_between_equal_groups(distance):
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(3))
    assert float(distance(torch.cat([x, x]), torch.tensor([0] * 6 + [1] * 6))) == pytest.approx(0, abs=1e-5)
    assert float(distance(torch.cat([x, x + 0.1]), torch.tensor([0] * 6 + [1] * 6))) > 0


@pytest.mark.parametrize("distance", [coral, mmd])
def test_gradients_are_those_of_the_definition(distance, batch):
    x, group = batch
    assert torch.autograd.gradcheck(lambda z: distance(z, group), (x.double().requires_grad_(),), atol=1e-4)


def test_any_number_of_a_domains_samples_is_equally_likely_on_a_side():
    # one domain of 4 samples and one of 40: the first has 0 to 4 samples on side 1, each in a fifth of the draws; fair
    # coins would have 2 in three eighths of them
    torch.manual_seed(0)
    domain = torch.tensor([0] * 4 + [1] * 40)
    counts = torch.zeros(5)
    for _ in range(3000):
        side = resplit(domain, 2)
        if side is not None:
            counts[int(side[:4].sum())] += 1
    assert torch.allclose(counts / counts.sum(), torch.full((5,), 0.2), atol=0.03)


def test_a_side_with_fewer_than_two_samples_is_none():
    torch.manual_seed(0)
    assert all(resplit(torch.tensor([0, 0, 0]), 1) is None for _ in range(20))
