from pathlib import Path

import pytest

from unspur.data.images.cache import ImageFile
from unspur.data.images.listing import Listing
from unspur.data.images.splitting import codes, partition
from unspur.errors import UnspurError


def listing(labels, splits=None):
    files = [ImageFile(f"{number}.png", 1, 1) for number in range(len(labels))]
    return Listing(Path("photos"), files, labels, splits)


def parts(labels, splits=None, val=0.1, test=0.2, seed=0):
    found, notes = partition(listing(labels, splits), codes(labels, sorted(set(labels))), val, test, seed)
    return {name: index.tolist() for name, index in found.items()}, notes


def test_a_test_share_is_of_all_images_and_a_validation_share_of_the_rest():
    # 100 images: 20 to test on, and of the other 80 a tenth
    found, notes = parts(["a"] * 50 + ["b"] * 50)
    assert {name: len(index) for name, index in found.items()} == {"train": 72, "val": 8, "test": 20}
    assert sorted(number for index in found.values() for number in index) == list(range(100))
    assert notes[0] == "The test set was drawn with seed 0 (20 of 100 images)."
    assert sum(number < 50 for number in found["test"]) == 10  # half of each class


def test_another_seed_draws_another_split():
    labels = ["a"] * 50 + ["b"] * 50
    assert parts(labels, seed=0) == parts(labels, seed=0) and parts(labels, seed=0)[0] != parts(labels, seed=1)[0]


def test_given_splits_stay_and_only_what_is_missing_is_drawn():
    labels = ["a", "b"] * 10
    splits = ["test"] * 4 + ["train"] * 16
    found, notes = parts(labels, splits, val=0.25)
    assert found["test"] == [0, 1, 2, 3] and len(found["val"]) == 4 and len(notes) == 1


def test_no_validation_set_is_drawn_where_none_is_wanted():
    assert parts(["a", "b"] * 5, val=0)[0]["val"] == []


def test_one_class_is_what_is_wrong_before_any_share_is():
    with pytest.raises(UnspurError, match="All 6 images of photos have the label 'a'; a classifier needs two classes"):
        parts(["a"] * 6)


def test_shares_without_a_whole_image_say_what_to_change():
    with pytest.raises(UnspurError, match=r"data\.val=0\.1 of 5 images is no whole image, .* set it to 0"):
        parts(["a", "b"] * 3)
