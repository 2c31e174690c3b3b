import pytest
import torch

from unspur.data.shortcuts.assign import assign, assign_evenly, assign_like_training
from unspur.errors import UnspurError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_an_exact_number_conflicts_and_every_class_has_its_share():
    # 600 + 300 + 100 samples, 5 %: 30 + 15 + 5 conflict
    y = torch.arange(3).repeat_interleave(torch.tensor([600, 300, 100]))
    values = assign(y, 3, generator(), conflict=0.05)
    assert [(values != y)[y == label].sum().item() for label in range(3)] == [30, 15, 5]


def test_a_count_is_met_exactly_when_classes_do_not_divide_it():
    y = torch.arange(10).repeat(55)
    assert (assign(y, 10, generator(), conflict_count=249) != y).sum() == 249


def test_conflicting_samples_take_each_of_the_other_values_equally_often():
    # 90,000 conflicting samples of class 3 of 10: 10,000 of each other value, give or take 4 standard deviations (94)
    y = torch.full((90_000,), 3)
    counts = assign(y, 10, generator(), conflict=1.0).bincount(minlength=10)
    assert counts[3] == 0
    assert ((counts - 10_000).abs()[torch.arange(10) != 3] < 400).all()


def test_a_share_counts_conflicting_samples_and_not_draws_from_all_values():
    # Drawing from all 10 values with probability 0.5 would leave 0.5 * 0.9 = 45 % conflicting.
    y = torch.arange(10).repeat(100)
    assert (assign(y, 10, generator(), conflict=0.5) != y).float().mean() == 0.5


def test_aligned_names_the_value_of_each_label():
    values = assign(torch.tensor([0, 0, 1, 1]), 2, generator(), conflict=0, aligned=torch.tensor([1, 0]))
    assert values.tolist() == [1, 1, 0, 0]


def test_the_same_seed_gives_the_same_values_and_another_seed_others():
    y = torch.arange(10).repeat(100)
    first, again, other = (assign(y, 10, generator(seed), conflict=0.3) for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"conflict": 1.5}, "conflict is a share and must be between 0 and 1 but got 1.5."),
        ({"conflict": -0.1}, "conflict is a share and must be between 0 and 1 but got -0.1."),
        ({"conflict": float("nan")}, "conflict is a share and must be between 0 and 1 but got nan."),
        (
            {"conflict": 0.1, "conflict_count": 3},
            "Give conflict or conflict_count, not both: got conflict=0.1 and conflict_count=3.",
        ),
        ({}, "Give conflict, a share, or conflict_count, a number."),
        ({"conflict_count": -1}, "conflict_count must be at least 0 but got -1."),
        ({"conflict_count": 5}, "conflict_count must be at most the 4 samples but got 5."),
    ],
)
def test_what_makes_no_sense_is_an_error(options, sentence):
    with pytest.raises(UnspurError) as error:
        assign(torch.tensor([0, 1, 0, 1]), 2, generator(), **options)
    assert str(error.value) == sentence


def test_nothing_to_assign_is_no_error():
    assert assign(torch.zeros(0, dtype=torch.long), 10, generator(), conflict=0.5).tolist() == []


def test_even_values_are_independent_of_the_label():
    # 23 samples a class over 10 values: each value 2 or 3 times in every class
    y = torch.arange(4).repeat(23)
    values = assign_evenly(y, 10, generator())
    counts = torch.bincount(y * 10 + values, minlength=40).reshape(4, 10)
    assert counts.min() == 2 and counts.max() == 3 and (counts.sum(1) == 23).all()
    assert not torch.equal(values[y == 0], values[y == 0].sort().values)


@pytest.mark.parametrize(("part", "conflicting"), [("train", 7), ("val", 14)])
def test_a_count_is_exact_in_training_and_a_share_elsewhere(part, conflicting):
    # 7 of 100 training samples are 7 %, which is 14 of 200 others
    y = torch.arange(2).repeat(50 if part == "train" else 100)
    values = assign_like_training(part, y, 2, generator(), training=100, conflict=None, conflict_count=7)
    assert (values != y).sum() == conflicting
