import pytest
import torch

from data import copies
from unspur.data.base import groups_of
from unspur.data.catalog import dataset_named, load
from unspur.data.info import describe
from unspur.errors import UnspurError


def test_animals_are_the_class_and_places_the_attribute(tmp_path):
    copies.petscapes(tmp_path / "petscapes")
    data = load("petscapes", tmp_path, size=8)
    assert data.classes == ("cat", "dog") and data.attribute_values == {"place": ("sea", "forest")}
    for split, counts in ((data.train, [3, 1, 1, 4]), (data.val, [1, 1, 1, 1]), (data.tests["test"], [2, 1, 1, 2])):
        assert groups_of(split).id.bincount().tolist() == counts
    # The copy's colours show the group: 40 * number + 20 for the animal (red) and the place (green).
    shown = data.train.x[torch.arange(9)].float().mean((2, 3))
    assert torch.equal(((shown[:, 0] - 20) / 40).round().long(), data.train.y)
    assert torch.equal(((shown[:, 1] - 20) / 40).round().long(), data.train.attributes["place"])


def test_each_split_has_the_masks_of_its_own_images(tmp_path):
    # Mask n is white in n + 1 of 32 rows. Images 0 to 8 are for training, 9 to 12 for validation, 13 to 18 for testing.
    copies.petscapes(tmp_path / "petscapes")
    masks = load("petscapes", tmp_path, size=32).foreground
    rows = {name: masks[name][torch.arange(masks[name].shape[0])].float().sum((1, 2)) / 32 for name in masks}
    assert {name: count.tolist() for name, count in rows.items()} == {
        "train": list(range(1, 10)),
        "val": list(range(10, 14)),
        "test": list(range(14, 20)),
    }


def test_masks_are_read_only_when_asked_for(tmp_path):
    root = copies.petscapes(tmp_path / "petscapes")
    (root / "masks/00002.png").write_bytes(b"broken")
    data = load("petscapes", tmp_path, size=8)
    assert data.foreground["train"][torch.tensor([1])].shape == (1, 8, 8)
    with pytest.raises(UnspurError, match=r"The mask .*00002\.png is not an image .*; unpack the data set again"):
        data.foreground["train"][torch.tensor([2])]


def test_counts_are_compared_with_those_of_the_whole_set(tmp_path):
    copies.petscapes(tmp_path / "petscapes")
    info = describe(dataset_named("petscapes")(), tmp_path)
    assert info["verified"] is False
    assert info["counts"][0] == {"split": "train", "groups": [["cat", "sea"]], "published": 827, "found": 3}
    assert sum(count["published"] for count in info["counts"]) == 3033 + 591 + 3606


def test_other_sets_have_no_foreground(tmp_path):
    copies.waterbirds(tmp_path / "waterbirds")
    assert load("waterbirds", tmp_path, size=8).foreground == {}
