import pytest
import torch
from torch import tensor

from unspur.data.base import Split, aligned_with, groups_of, stratified_split
from unspur.data.masks import BitMask
from unspur.errors import UnspurError


def split(y, x=None, **attributes):
    pixels = torch.arange(len(y) * 4, dtype=torch.uint8).reshape(-1, 1, 2, 2) if x is None else x
    return Split(pixels, tensor(y), {name: tensor(column) for name, column in attributes.items()})


def test_a_batch_is_scaled_to_one_and_says_which_samples_it_holds():
    images = torch.tensor([0, 51, 255], dtype=torch.uint8).reshape(3, 1, 1, 1)
    batch = split([4, 5, 6], images).batch(tensor([2, 1]))
    assert batch.x.flatten().tolist() == [1.0, pytest.approx(0.2)]
    assert batch.y.tolist() == [6, 5] and batch.index.tolist() == [2, 1]


def test_vectors_are_not_scaled():
    assert split([0], torch.tensor([[-1.0, 255.0]])).batch(tensor([0])).x.tolist() == [[-1.0, 255.0]]


def test_what_is_masked_is_black_in_every_channel():
    white = torch.full((2, 3, 2, 2), 255, dtype=torch.uint8)
    hidden = torch.zeros(2, 2, 2, dtype=torch.bool)
    hidden[1, 0, 1] = True
    x = split([0, 1], white).masked(BitMask.of(hidden)).batch(tensor([0, 1])).x
    assert (x[0] == 1).all() and x[1].sum(0).tolist() == [[3, 0], [3, 3]]


def test_a_subset_keeps_each_sample_with_its_label_attributes_and_mask():
    hidden = torch.arange(3)[:, None, None].eq(2).expand(3, 2, 2)
    some = split([7, 8, 9], place=[0, 1, 2]).masked(BitMask.of(hidden)).subset(tensor([2, 0]))
    assert some.y.tolist() == [9, 7] and some.attributes["place"].tolist() == [2, 0]
    assert some.batch(tensor([0, 1])).x.flatten(1).sum(1).tolist() == [0, pytest.approx((0 + 1 + 2 + 3) / 255)]


def test_columns_must_be_as_long_as_the_split():
    with pytest.raises(UnspurError, match=r"A split of 2 samples needs as many values of 'place', but got \(3,\)"):
        split([0, 1], place=[0, 1, 2])


def test_groups_are_sorted_by_label_then_by_each_attribute():
    groups = groups_of(split([1, 0, 1, 0], a=[0, 1, 0, 1], b=[5, 5, 4, 5]))
    assert groups.keys == ((0, 1, 5), (1, 0, 4), (1, 0, 5)) and groups.id.tolist() == [2, 0, 1, 0]


def test_aligned_is_what_training_shows_more_often_than_chance():
    # label 0: a=1 in 3 of 4; label 1: a=1 in 1 of 4. Of 8 samples 4 have a=1: 3 * 8 > 4 * 4, but 1 * 8 < 4 * 4.
    train = split([0, 0, 0, 0, 1, 1, 1, 1], a=[1, 1, 1, 0, 1, 0, 0, 0])
    assert aligned_with(train, split([0, 0, 1, 1], a=[1, 0, 1, 0])).tolist() == [True, False, False, True]


def test_with_several_attributes_every_one_must_be_aligned():
    train = split([0, 0, 1, 1], a=[1, 1, 0, 0], b=[1, 1, 0, 0])
    assert aligned_with(train, split([0, 0, 0], a=[1, 1, 0], b=[1, 0, 0])).tolist() == [True, False, False]


def test_nothing_is_aligned_where_there_is_nothing_to_follow():
    assert aligned_with(split([0, 1]), split([0, 1])) is None  # no attributes
    independent = split([0, 0, 1, 1], a=[0, 1, 0, 1])
    assert aligned_with(independent, independent) is None
    train = split([0, 0, 1, 1], a=[1, 1, 0, 0])
    assert aligned_with(train, split([0, 1], a=[2, 2])) is None  # a value that training does not know


def test_a_stratified_split_takes_each_class_in_its_share():
    # 60, 30 and 10 samples, 25 held out: 15, 7.5 and 2.5; one sample is left for the largest remainders, the first
    y = torch.arange(3).repeat_interleave(tensor([60, 30, 10]))
    kept, held = stratified_split(y, 25, torch.Generator().manual_seed(0))
    assert torch.cat([kept, held]).sort().values.tolist() == list(range(100))
    assert y[held].bincount().tolist() == [15, 8, 2]
    assert held.tolist() == sorted(held.tolist()) and kept.tolist() == sorted(kept.tolist())


def test_all_samples_cannot_be_held_out():
    with pytest.raises(UnspurError, match="Cannot hold out 2 of 2 samples"):
        stratified_split(tensor([0, 1]), 2, torch.Generator())
