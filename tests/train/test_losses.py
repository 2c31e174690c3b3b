import math

import pytest
import torch

from unspur.data.base import Batch
from unspur.train.losses import confident_cross_entropy, cross_entropy, generalised_cross_entropy


def of(*probabilities):
    """A batch of two classes whose label, 0, has the given probabilities."""
    p = torch.tensor(probabilities, dtype=torch.float64)
    logits = torch.stack([p.log(), (1 - p).log()], 1).requires_grad_()
    return logits, Batch(torch.zeros(len(p), 1), torch.zeros(len(p), dtype=torch.long), torch.arange(len(p)))


def test_generalised_cross_entropy_by_hand():
    logits, batch = of(0.25, 0.81)
    # q = 0.5: (1 - 0.5) / 0.5 = 1 and (1 - 0.9) / 0.5 = 0.2; q = 1: 1 - p
    assert generalised_cross_entropy(0.5)(logits, batch).tolist() == pytest.approx([1.0, 0.2])
    assert generalised_cross_entropy(1.0)(logits, batch).tolist() == pytest.approx([0.75, 0.19])


def test_its_gradient_is_that_of_cross_entropy_times_p_to_the_q():
    logits, batch = of(0.1, 0.9)
    (generalised,) = torch.autograd.grad(generalised_cross_entropy(0.7)(logits, batch).sum(), logits)
    (plain,) = torch.autograd.grad(cross_entropy(logits, batch).sum(), logits)
    assert torch.allclose(generalised, plain * torch.tensor([[0.1**0.7], [0.9**0.7]], dtype=torch.float64))


def test_it_stays_finite_where_the_label_is_all_but_impossible():
    logits = torch.tensor([[-200.0, 200.0]], requires_grad=True)
    loss = generalised_cross_entropy(0.7)(logits, Batch(torch.zeros(1, 1), torch.tensor([0]), torch.tensor([0])))
    loss.sum().backward()
    assert loss.item() == pytest.approx(1 / 0.7) and torch.isfinite(logits.grad).all()


def test_only_samples_with_a_confident_label_count():
    logits, batch = of(0.04, 0.06, 0.9)
    assert confident_cross_entropy(0.05)(logits, batch).tolist() == pytest.approx([0, -math.log(0.06), -math.log(0.9)])
