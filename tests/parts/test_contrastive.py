import math

import pytest
import torch

from unspur.data.base import Batch
from unspur.parts.contrastive import alignment, contrast, has_pair


def by_definition(features, batch, anchors, partners, temperature):
    """Eq. 15 as printed, over sample numbers, and divided by the number of anchors that have all they need."""
    z = features / features.norm(dim=1, keepdim=True)
    total, counted = 0.0, 0
    for i in range(len(z)):
        if not anchors[i]:
            continue
        distinct = [j for j in range(len(z)) if batch.index[j] != batch.index[i]]
        plus = [j for j in distinct if partners[j] and batch.y[j] == batch.y[i]]
        others = [a for a in distinct if anchors[a]]
        if not plus or not others:
            continue
        below = sum(math.exp((z[i] @ z[a]).item() / temperature) for a in others)
        terms = [math.log(math.exp((z[i] @ z[j]).item() / temperature) / below) for j in plus]
        total += -1 / len(plus) * sum(terms)
        counted += 1
    return total / counted if counted else 0.0


def random_batch(seed, n=24, classes=3):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, 5, generator=generator, dtype=torch.float64)
    y = torch.randint(0, classes, (n,), generator=generator)
    index = torch.randint(0, n, (n,), generator=generator)  # some samples more than once
    y = y[index]  # copies of a sample have one label
    features = features[index]
    mined = (torch.rand(n, generator=generator) < 0.3)[index]
    return features.requires_grad_(), Batch(torch.zeros(n, 1), y, index), mined


@pytest.mark.parametrize("seed", range(5))
def test_both_terms_equal_a_loop_over_the_definition(seed):
    features, batch, mined = random_batch(seed)
    everything = torch.ones_like(mined)
    first = by_definition(features, batch, mined, everything, 0.5)
    second = by_definition(features, batch, ~mined, mined, 0.5)
    assert contrast(features, batch, mined, everything, 0.5).item() == pytest.approx(first)
    assert contrast(features, batch, ~mined, mined, 0.5).item() == pytest.approx(second)
    assert alignment(features, batch, mined, 0.5).item() == pytest.approx(first + second)


def small(y, mined, features=None, index=None):
    n = len(y)
    features = torch.eye(n, dtype=torch.float64) if features is None else torch.tensor(features, dtype=torch.float64)
    index = torch.arange(n) if index is None else torch.tensor(index)
    return features.requires_grad_(), Batch(torch.zeros(n, 1), torch.tensor(y), index), torch.tensor(mined)


def test_the_denominator_runs_over_the_anchors_and_not_over_the_partners():
    # Orthogonal features: every likeness is 0. Mined samples 0, 1, 2 each have 2 other anchors: log 2 each, whereas a
    # denominator over all five samples would give log 4. Of them only 0 (with 1 and 3) and 1 have a partner of class 0.
    features, batch, mined = small([0, 0, 1, 0, 0], [True, True, True, False, False])
    assert contrast(features, batch, mined, torch.ones_like(mined), 1.0).item() == pytest.approx(math.log(2))


def test_the_second_term_pulls_aligned_samples_apart_also_within_a_class():
    # Two aligned samples of class 0 that coincide, and a mined one at right angles: log exp(1) - 0 = 1 for each anchor.
    features, batch, mined = small([0, 0, 0], [False, False, True], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert contrast(features, batch, ~mined, mined, 1.0).item() == pytest.approx(1.0)


def test_features_are_compared_by_direction_alone():
    features, batch, mined = random_batch(1)
    scale = torch.arange(1, len(features) + 1).unsqueeze(1)
    assert alignment(features * scale, batch, mined, 0.1).item() == pytest.approx(
        alignment(features, batch, mined, 0.1).item()
    )


def test_copies_of_a_sample_are_no_pair():
    # The only partner of a class is a copy of the anchor itself: no pair, so no loss.
    features, batch, mined = small([0, 0, 1], [True, True, True], index=[7, 7, 8])
    assert contrast(features, batch, mined, torch.ones_like(mined), 1.0).item() == 0.0


@pytest.mark.parametrize(
    ("y", "mined"),
    [
        ([0, 1, 2], [True, False, False]),  # no two samples of a class
        ([0, 0, 1], [False, False, False]),  # nothing mined
        ([0, 0, 0], [True, True, True]),  # the first term has a pair; all mined: the second term has no anchor
        ([0, 1], [True, False]),  # one anchor in each set: nobody to be told from
    ],
)
def test_without_a_pair_the_loss_and_its_gradient_are_finite(y, mined):
    features, batch, mined = small(y, mined)
    loss = alignment(features, batch, mined, 0.07)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(features.grad).all()
    assert has_pair(batch.y, batch.index, mined) == bool(loss)


def test_a_feature_vector_of_zeros_gives_a_finite_gradient():
    features, batch, mined = small([0, 0, 0, 0], [True, True, False, False], torch.zeros(4, 3).tolist())
    loss = alignment(features, batch, mined, 0.07)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(features.grad).all()


def test_the_gradient_is_right():
    features, batch, mined = random_batch(2, n=8)
    assert torch.autograd.gradcheck(lambda f: alignment(f, batch, mined, 0.5), features)
