"""Logistic regression along a path of L2, against scikit-learn."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn import functional

from unspur.parts.logistic_path import logistic_path


def drawn(n=300, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=generator)
    x = torch.randn(n, 5, generator=generator, dtype=torch.double) * torch.tensor([1, 10, 0.1, 3, 1]) + 4
    return x + functional.one_hot(y, 5), y


def test_heads_are_those_of_scikit_learn_on_scaled_features():
    x, y = drawn()
    weight = torch.rand(len(y), generator=torch.Generator().manual_seed(1), dtype=torch.double) + 0.1
    share = weight / weight.sum()
    mean = share @ x
    scaled = (x - mean) / (share @ (x - mean) ** 2).sqrt()
    for l2, head in zip((0.1, 1.0), logistic_path(x, y, (0.1, 1.0), 3, weight=weight), strict=True):
        # scikit-learn minimises C sum w_i loss_i + |W|^2 / 2, which is ours over l2
        peer = LogisticRegression(C=1 / l2, tol=1e-10, max_iter=5000).fit(scaled, y, sample_weight=share)
        expected = peer.decision_function(scaled)
        found = functional.linear(x, head.weight, head.bias)
        found = found - found.mean(1, keepdim=True)  # both up to a constant
        assert np.allclose(found, expected - expected.mean(1, keepdims=True), atol=1e-3)


def test_the_order_of_strengths_does_not_matter():
    x, y = drawn(classes=2)
    one, other = logistic_path(x, y, (0.1, 1.0), 2), logistic_path(x, y, (1.0, 0.1), 2)
    assert torch.equal(one[0].weight, other[1].weight) and torch.equal(one[1].bias, other[0].bias)
    assert one[0].weight.norm() > one[1].weight.norm()
