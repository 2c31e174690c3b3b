import pytest
import torch

from unspur.parts import balanced_heads
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
    data = Labelled(
        torch.stack([y.float(), torch.zeros(77)], 1), y, GROUP
    )  # feature 0 is the class, 1 the sample's number
    others = Others(torch.tensor([[0.0, 10.0], [0.0, 20.0], [1.0, 30.0]]), torch.tensor([0, 0, 1]))
    mixed = _draw(data, others, 0.9, torch.Generator().manual_seed(0))
    assert torch.allclose(mixed.x[:, 0], mixed.y.float())  # partners are of one class
    # 28 samples of class 1 (7 + 20 held out, one other) are the fewest; all of them have a part, once each
    assert torch.bincount(mixed.y).tolist() == [28, 28]
    assert sorted(mixed.x[mixed.y == 1, 1].tolist())[-2:] == pytest.approx([0.0, 3.0])  # 0.1 * 30
    assert len(mixed.group.unique()) == 3


def test_with_a_share_of_one_balanced_samples_are_left_and_without_others_each_of_them_once():
    data = Labelled(torch.arange(77.0)[:, None], (GROUP > 0).long(), GROUP)
    others = Others(torch.full((2, 1), 1e6), torch.tensor([0, 1]))
    drawn = _draw(data, others, 1.0, torch.Generator().manual_seed(0))
    once = _draw(data, None, 1.0, torch.Generator().manual_seed(0))
    assert len(once.x.unique()) == 21 and len(drawn.x) == 56  # 28 of each class, as above
    assert set(drawn.x.flatten().tolist()) <= set(once.x.flatten().tolist())


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
    assert found.figures["fitted_samples"] == 3  # one of each
    assert torch.isfinite(found.heads.weight).all() and 0 <= found.figures["chosen"]["score"] <= 1
    (said,) = found.warnings
    assert said.startswith("1 of 3 groups of the validation data have one sample, so that balanced draws have one")


def test_settings_are_judged_on_the_half_that_was_not_fitted():
    # 150 features of noise: a weak penalty fits the first half by heart, and the other half shows that it did
    generator = torch.Generator().manual_seed(0)
    y, group = torch.arange(240) % 2, torch.arange(240) % 4
    x = torch.randn(240, 151, generator=generator)
    x[:, 0] += 2 * y - 1
    found = balanced_head(Labelled(x, y, group), None, 2, Plan((1000.0, 0.1), (1.0,), 2, 500), Session())
    assert found.figures["chosen"]["strength"] == 0.1 and found.figures["chosen"]["score"] < 0.95


def test_fits_are_of_standardised_balanced_draws_of_all_samples_and_tuning_of_one_half(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    y, group = (GROUP > 0).long(), GROUP
    x, seen = 100 + 5 * torch.randn(77, 3, generator=generator), []
    real = balanced_heads.fit_heads
    monkeypatch.setattr(balanced_heads, "fit_heads", lambda *given: seen.append(given) or real(*given))
    others = Others(100 + 5 * torch.randn(60, 3, generator=generator), torch.arange(60) % 2)
    balanced_head(Labelled(x, y, group), others, 2, Plan((1.0,), (0.5,), 2, 20), Session())
    # a half has 4 of the smallest group, and 38 of the held-out samples; class 1 is the smaller one with 14 + 30
    assert [len(given[1]) for given in seen] == [2 * (14 + 30), *[2 * (27 + 30)] * 2]
    for given in seen:
        assert given[0].abs().max() < 5  # mixtures of standardised features, not of numbers near 100
    standard = (x.double() - x.double().mean(0)) / x.double().std(0, correction=0)
    only = []
    monkeypatch.setattr(balanced_heads, "fit_heads", lambda *given: only.append(given) or real(*given))
    balanced_head(Labelled(x, y, group), None, 2, Plan((1.0,), (1.0,), 1, 20), Session())
    assert [len(given[1]) for given in only] == [12, 21]  # 4 of each group's half, 7 of each group
    assert torch.cdist(only[1][0].double(), standard).min(1).values.max() < 1e-6  # each is one of the samples


def test_the_worst_group_and_not_the_accuracy_decides_between_strengths(monkeypatch):
    # of 100 samples 90 are in group 0: one strength is right on those, the other on 60 of them and all the rest
    group = torch.tensor([0] * 90 + [1] * 10)
    right = torch.stack([group == 0, (group == 1) | (torch.arange(100) % 3 > 0)])
    monkeypatch.setattr(balanced_heads.Heads, "right", lambda self, x, y: right[:, x[:, 0].long()])
    monkeypatch.setattr(balanced_heads.Scale, "apply", lambda self, x: x)
    x = torch.arange(100.0)[:, None]
    found = balanced_head(Labelled(x, torch.arange(100) % 2, group), None, 2, Plan((1.0, 0.5), (1.0,), 1, 5), Session())
    assert found.figures["chosen"]["strength"] == 0.5
