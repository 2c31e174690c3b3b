import pytest
import torch

from unspur.parts.balanced_heads import Labelled, Others, Plan, _draw, balanced, balanced_head, halves
from unspur.train.session import Session

GROUP = torch.tensor([0] * 50 + [1] * 7 + [2] * 20)


def test_a_balanced_draw_has_as_many_of_each_group_as_the_smallest_and_none_twice():
    index = balanced(GROUP, torch.Generator().manual_seed(0))
    assert torch.bincount(GROUP[index]).tolist() == [7, 7, 7] and len(index.unique()) == 21
    assert not torch.equal(index, balanced(GROUP, torch.Generator().manual_seed(1)))
    assert torch.equal(index, balanced(GROUP, torch.Generator().manual_seed(0)))


def test_halves_share_every_group():
    first, second = halves(GROUP, torch.Generator().manual_seed(0))
    assert torch.bincount(GROUP[first]).tolist() == [25, 4, 10]
    assert torch.bincount(GROUP[second]).tolist() == [25, 3, 10]
    assert sorted(torch.cat([first, second]).tolist()) == list(range(77))


def test_mixtures_are_of_one_class_in_shares():
    y = (GROUP > 0).long()
    data = Labelled(torch.ones(77, 2), y, GROUP)
    others = Others(torch.tensor([[10.0, 0.0], [20.0, 0.0]]), torch.tensor([0, 1]))
    mixed = _draw(data, others, 0.9, torch.Generator().manual_seed(0))
    # 0.9 + 0.1 * 10 for class 0, 0.9 + 0.1 * 20 for class 1
    assert torch.allclose(mixed.x[mixed.y == 0], torch.tensor([1.9, 0.9]))
    assert torch.allclose(mixed.x[mixed.y == 1], torch.tensor([2.9, 0.9]))


def test_without_mixing_nothing_changes():
    data = Labelled(torch.ones(77, 2), (GROUP > 0).long(), GROUP)
    others = Others(torch.zeros(2, 2), torch.tensor([0, 1]))
    assert torch.equal(_draw(data, others, 1.0, torch.Generator()).x, torch.ones(21, 2))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_worst_group_of_what_is_held_back_decides(classes):
    # feature 0 is the class, feature 1 agrees with it in the large groups alone
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, classes, (900,), generator=generator)
    told = torch.where(torch.rand(900, generator=generator) < 0.95, y, (y + 1) % classes)
    x = torch.stack([y + 0.7 * torch.randn(900, generator=generator), 3.0 * told], 1)
    group = torch.stack([y, told], 1).unique(dim=0, return_inverse=True)[1]
    plan = Plan((1.0, 1e-4), (1.0,), 5, 500)
    found = balanced_head(Labelled(x, y, group), None, classes, plan, Session())
    assert found.figures["chosen"]["strength"] == 1.0  # with 1e-4 every weight is 0
    assert found.figures["zero_weights"] < 1
    right = found.heads.right(x, y)[0].double()
    assert min(float(right[group == g].mean()) for g in group.unique()) > (0.7 if classes == 2 else 0.4)


def test_a_group_of_one_sample_is_fitted_but_not_judged_and_said():
    generator = torch.Generator().manual_seed(0)
    group = torch.tensor([0] * 30 + [1] * 30 + [2])
    x = torch.randn(61, 3, generator=generator) + group[:, None]
    found = balanced_head(Labelled(x, (group > 0).long(), group), None, 2, Plan((1.0,), (1.0,), 2, 100), Session())
    assert found.figures["balanced_samples"] == 3  # one of each
    assert torch.isfinite(found.heads.weight).all() and 0 <= found.figures["chosen"]["score"] <= 1
    (said,) = found.warnings
    assert said.startswith("1 of 3 groups of the validation data have one sample, so that balanced draws have one")
