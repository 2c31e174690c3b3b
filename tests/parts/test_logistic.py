"""Against scikit-learn, which solves the same problems by other means."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional

from unspur.errors import UnspurError
from unspur.parts.logistic import Heads, Penalty, Scale, fit_heads, require_bias, zero_heads

linear_model = pytest.importorskip("sklearn.linear_model")


def problem(classes, n=150, width=8):
    generator = torch.Generator().manual_seed(classes)
    x = torch.randn(n, width, generator=generator)
    logits = x @ torch.randn(width, classes, generator=generator) + torch.randn(n, classes, generator=generator)
    return x, logits.argmax(1)


def value(heads, x, y, c):
    """|w| + C times the sum of cross-entropy, which scikit-learn minimises."""
    return float(heads.weight.abs().sum() + c * functional.cross_entropy(heads.logits(x)[0], y, reduction="sum"))


def reference(x, y, c):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = linear_model.LogisticRegression(
            penalty="l1", C=c, solver="saga", max_iter=20000, tol=1e-8, random_state=0
        )
        model.fit(x.double().numpy(), y.numpy())
    weight, bias = torch.tensor(model.coef_)[None], torch.tensor(model.intercept_)[None]
    if weight.shape[1] == 1:  # two classes: one row, the difference of ours
        weight, bias = torch.cat([0 * weight, weight], 1), torch.cat([0 * bias, bias], 1)
    return Heads(weight, bias)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("c", [0.1, 1.0])
def test_an_l1_fit_is_scikit_learns(classes, c):
    x, y = problem(classes)
    even = torch.full((len(y),), 1 / len(y))
    own = fit_heads(x, y, even, zero_heads(1, classes, x), Penalty(l1=1 / (c * len(y))), 5000)
    theirs = reference(x, y, c)
    best = value(theirs, x, y, c)
    assert best * (1 - 1e-3) < value(own, x, y, c) < best * (1 + 1e-6)  # saga's intercept is slow to arrive
    p, q = (heads.logits(x)[0].softmax(1) for heads in (own, theirs))
    assert torch.allclose(p, q, atol=1e-2)


def test_fits_side_by_side_are_those_alone():
    x, y = problem(3)
    even, l1 = torch.full((len(y),), 1 / len(y)), torch.tensor([0.2, 0.01])
    both = fit_heads(x, y, even, zero_heads(2, 3, x), Penalty(l1=l1), 3000)
    for number in range(2):
        alone = fit_heads(x, y, even, zero_heads(1, 3, x), Penalty(l1=float(l1[number])), 3000)
        assert torch.allclose(both.weight[number], alone.weight[0], atol=1e-4)
    assert (both.weight[0] == 0).sum() > (both.weight[1] == 0).sum()


def test_weights_of_samples_count_like_copies_of_them():
    x, y = problem(2, n=30)
    times = torch.tensor([1, 2, 3] * 10)
    share = times.double() / times.sum()
    weighted = fit_heads(x, y, share, zero_heads(1, 2, x), Penalty(l1=0.01), 3000)
    many_x, many_y = x.repeat_interleave(times, 0), y.repeat_interleave(times)
    even = torch.full((len(many_y),), 1 / len(many_y))
    copied = fit_heads(many_x, many_y, even, zero_heads(1, 2, x), Penalty(l1=0.01), 3000)
    assert torch.allclose(weighted.weight, copied.weight, atol=1e-4)


def test_a_strong_pull_keeps_weights_where_they_began_and_the_slope_of_the_whole_is_zero_at_the_end():
    x, y = problem(3)
    even = torch.full((len(y),), 1 / len(y))
    start = Heads(torch.ones(2, 3, x.shape[1]).double(), torch.ones(2, 3).double())
    found = fit_heads(x, y, even, start, Penalty(l2=torch.tensor([1e6, 0.1])), 5000)
    assert torch.allclose(found.weight[0], start.weight[0], atol=1e-4)
    weight = found.weight[1].clone().requires_grad_()
    loss = functional.cross_entropy(x.double() @ weight.T + found.bias[1], y)
    (loss + 0.1 * (weight - 1).square().sum()).backward()
    assert weight.grad.abs().max() < 1e-4


def test_undoing_a_scale_gives_the_same_answers_from_the_features_as_they_are():
    x, _ = problem(2)
    x = torch.cat([5 + 3 * x, torch.ones(len(x), 1)], 1)  # the last feature never changes
    scale = Scale.of(x)
    scaled = scale.apply(x)
    assert torch.allclose(scaled.mean(0), torch.zeros(9).double(), atol=1e-6)
    assert torch.allclose(scaled.std(0, correction=0)[:-1], torch.ones(8).double(), atol=1e-6)
    heads = Heads(torch.randn(1, 2, 9).double(), torch.randn(1, 2).double())
    assert torch.allclose(scale.undo(heads).logits(x), heads.logits(scaled))


def test_a_last_layer_without_a_bias_is_refused():
    with pytest.raises(UnspurError, match="The last layer has no bias"):
        require_bias(nn.Linear(2, 2, bias=False))
