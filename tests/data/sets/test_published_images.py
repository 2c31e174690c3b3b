"""Every set of image files in a tiny copy of its published layout (copies.py says whose)."""

import shutil

import pytest
import torch
from PIL import Image

from data import copies
from unspur.data.base import groups_of
from unspur.data.catalog import dataset_named, fetch, load
from unspur.data.files.fetch import DataFiles
from unspur.data.info import describe
from unspur.data.preview import preview
from unspur.data.sets import spawrious as spawrious_module
from unspur.data.sets import waterbirds as waterbirds_module
from unspur.errors import DataMissing, UnspurError

SMALL = {"size": 8}


def counts(split):
    groups = groups_of(split)
    return dict(zip(groups.keys, groups.id.bincount().tolist(), strict=True))


def colours(split):
    """The numbers of the groups that the pictures show (JPEGs are a few levels off)."""
    x = split.x[torch.arange(len(split))].float().mean((2, 3))
    return ((x - 20) / 40).round().long()


def assert_shows(split, *columns):
    """Each image is of the group that its label and attributes say."""
    assert torch.equal(colours(split)[:, : len(columns)], torch.stack(columns, dim=1))


def test_waterbirds(tmp_path):
    copies.waterbirds(tmp_path / "waterbird_complete95_forest2water2")
    data = load("waterbirds", tmp_path, **SMALL)
    assert data.classes == ("landbird", "waterbird") and data.attribute_values == {"place": ("land", "water")}
    assert counts(data.train) == {(0, 0): 3, (0, 1): 2, (1, 0): 1, (1, 1): 3}
    assert counts(data.val) == {(0, 0): 2, (0, 1): 2, (1, 0): 2, (1, 1): 2}
    assert counts(data.tests["test"]) == {(0, 0): 2, (0, 1): 1, (1, 0): 2, (1, 1): 3}
    for number, split in enumerate((data.train, data.val, data.tests["test"])):
        assert_shows(split, split.y, split.attributes["place"], torch.full_like(split.y, number))


def test_the_corrected_waterbirds_take_the_folders_word_for_the_label(tmp_path):
    copies.corrected_waterbirds(tmp_path / "Waterbirds")
    data = load("waterbirds", tmp_path, release="corrected", **SMALL)
    # One land bird on land of the training set is a water bird now.
    assert counts(data.train) == {(0, 1): 1, (1, 0): 2, (1, 1): 1} and counts(data.val)[0, 0] == 1
    assert_shows(data.train, data.train.y, data.train.attributes["place"])
    assert describe(dataset_named("waterbirds")(release="corrected"), tmp_path)["verified"] is None


def test_waterbirds_are_verified_against_the_published_counts(tmp_path, monkeypatch):
    root = copies.waterbirds(tmp_path / "waterbirds")
    info = describe(dataset_named("waterbirds")(), tmp_path)
    assert info["verified"] is False and info["files"][0] == {
        "title": "Waterbirds", "folder": str(root), "state": "whole", "reason": None,
    }  # fmt: skip
    groups = [["landbird", "water"]]
    assert {"split": "train", "groups": groups, "published": 184, "found": 2} in info["counts"]
    assert sum(count["published"] for count in info["counts"]) == 11_788  # as many as CUB-200-2011 has images
    tiny = {"train": (3, 2, 1, 3), "val": (2, 2, 2, 2), "test test": (2, 1, 2, 3)}
    monkeypatch.setattr(waterbirds_module, "COUNTS", tiny)
    assert describe(dataset_named("waterbirds")(), tmp_path)["verified"] is True
    assert not (DataFiles(tmp_path).cache / "images").exists()  # nothing was decoded for it


@pytest.mark.parametrize("kaggle", [True, False], ids=["csv", "txt"])
def test_celeba(tmp_path, kaggle):
    copies.celeba(tmp_path / "celeba", kaggle=kaggle)
    hair = load("celeba", tmp_path, **SMALL)
    assert hair.classes == ("not blond", "blond") and hair.attribute_values == {"gender": ("female", "male")}
    gender = load("celeba", tmp_path, task="gender", **SMALL)
    assert gender.classes == ("female", "male") and gender.attribute_values == {"hair": ("not blond", "blond")}
    for number, name in enumerate(("train", "val", "test")):
        split = hair.tests["test"] if name == "test" else getattr(hair, name)
        other = gender.tests["test"] if name == "test" else getattr(gender, name)
        assert counts(split) == counts(other) == {(0, 0): 1, (0, 1): 1, (1, 0): 1, (1, 1): 1}
        assert_shows(split, split.y, split.attributes["gender"], torch.full_like(split.y, number))
        assert_shows(other, other.attributes["hair"], other.y)


def test_celebas_counts_are_those_of_all_images():
    for task in ("hair", "gender"):
        expected = dataset_named("celeba")(task=task).expected()
        assert sum(count.n for count in expected) == 202_599
        rare = next(count for count in expected if count.split == "train" and set(count.groups[0]) == {"blond", "male"})
        assert rare.n == 1_387


def test_bffhq(tmp_path):
    copies.bffhq(tmp_path / "bffhq")
    data = load("bffhq", tmp_path, **SMALL)
    assert data.classes == ("young", "old") and data.attribute_values == {"gender": ("female", "male")}
    assert counts(data.train) == {(0, 0): 3, (0, 1): 1, (1, 0): 1, (1, 1): 3}
    assert counts(data.val) == counts(data.tests["test"]) == {(0, 0): 1, (0, 1): 1, (1, 0): 1, (1, 1): 1}
    for split in (data.train, data.val, data.tests["test"]):
        assert_shows(split, split.y, split.attributes["gender"])
    aligned = describe(dataset_named("bffhq")(), tmp_path)["counts"][0]
    assert aligned == {
        "split": "train", "groups": [["young", "female"], ["old", "male"]], "published": 19_104, "found": 6,
    }  # fmt: skip
    (tmp_path / "bffhq" / "test" / "portrait.png").write_bytes(b"")
    with pytest.raises(UnspurError, match=r"test/portrait\.png is not called NUMBER_AGE_GENDER\.png"):
        load("bffhq", tmp_path)


def test_urbancars_have_two_attributes_and_their_masks_are_no_images(tmp_path):
    copies.urbancars(tmp_path / "urbancars")
    data = load("urbancars", tmp_path, **SMALL)
    assert list(data.attribute_values) == ["background", "object"] and data.classes == ("urban", "country")
    assert counts(data.train)[0, 0, 0] == 3 and counts(data.train)[0, 1, 1] == 1 and counts(data.train)[1, 1, 0] == 2
    assert set(counts(data.val).values()) == set(counts(data.tests["test"]).values()) == {1}
    for split in (data.train, data.val, data.tests["test"]):
        assert_shows(split, split.y, *split.attributes.values())
    # 4,000 images of each class: 3,610 + 2 * 190 + 10.
    train = [count.n for count in dataset_named("urbancars")().expected() if count.split == "train"]
    assert sum(train) == 8_000 and sorted(train)[:2] == [10, 10]


@pytest.fixture
def few_dogs(monkeypatch):
    monkeypatch.setattr(spawrious_module, "EACH", 6)


def test_spawrious_one_to_one(tmp_path, few_dogs):
    copies.spawrious(tmp_path / "spawrious224")
    data = load("spawrious", tmp_path, val=0, **SMALL)
    beach, desert, dirt, jungle, _mountain, snow = range(6)
    # Of 6 images int(0.97 * 6) = 5 of the first half and int(0.87 * 6) = 5 of the second, the rest on the beach.
    bulldog, corgi, dachshund, labrador = range(4)
    own = {bulldog: desert, dachshund: jungle, labrador: dirt, corgi: snow}
    expected = {(breed, place): 10 for breed, place in own.items()} | {(breed, beach): 2 for breed in own}
    assert counts(data.train) == expected
    moved = {bulldog: dirt, dachshund: snow, labrador: desert, corgi: jungle}
    assert counts(data.tests["test"]) == {(breed, place): 12 for breed, place in moved.items()}
    assert_shows(data.tests["test"], data.tests["test"].y)


def test_spawrious_many_to_many(tmp_path, few_dogs):
    copies.spawrious(tmp_path / "spawrious224")
    data = load("spawrious", tmp_path, variant="m2m_hard", val=0.25, **SMALL)
    beach, _desert, dirt, jungle, _mountain, snow = range(6)
    bulldog, corgi, dachshund, labrador = range(4)
    assert counts(data.tests["test"]) == {
        (breed, place): 6
        for breeds, places in (((bulldog, dachshund), (snow, beach)), ((labrador, corgi), (dirt, jungle)))
        for breed in breeds
        for place in places
    }
    assert (len(data.train), len(data.val)) == (36, 12) and set(data.val.y.bincount().tolist()) == {3}


@pytest.mark.parametrize("variant", spawrious_module.VARIANTS)
def test_every_variant_of_spawrious_changes_each_breeds_place(variant):
    spec = dataset_named("spawrious")(variant=variant)
    seen: dict[str, set] = {"train": set(), "test": set()}
    for portion in spec.portions():
        seen[portion.split].add((portion.breed, portion.place))
    assert not seen["train"] & seen["test"]
    # 25,344 images in training and in test: 8 * 3,168.
    assert {sum(p.n for p in spec.portions() if p.split == split) for split in seen} == {25_344}


def test_in9_has_four_test_sets(tmp_path):
    copies.in9(tmp_path / "in9")
    data = load("in9", tmp_path, **SMALL)
    assert list(data.tests) == ["original", "mixed_same", "mixed_rand", "only_fg"]
    assert data.classes[2] == "wheeled vehicle" and len(data.classes) == 9
    for part, split in enumerate((data.train, data.val, *data.tests.values())):
        assert_shows(split, split.y % 5, split.y // 5, torch.full_like(split.y, part))
    shutil.rmtree(tmp_path / "in9" / "test" / "mixed_rand")
    found = describe(dataset_named("in9")(), tmp_path)["files"][0]
    assert found["state"] == "damaged" and "test/mixed_rand/val" in found["reason"]


@pytest.mark.parametrize("kaggle", [True, False], ids=["Kaggle", "Microsoft"])
def test_cats_vs_dogs(tmp_path, kaggle):
    copies.cats_vs_dogs(tmp_path / "cats_vs_dogs", kaggle=kaggle)
    data = load("cats_vs_dogs", tmp_path, **SMALL)
    # 20 images: a fifth, 4, for testing, and a tenth of the other 16, 2, for validation.
    assert (len(data.train), len(data.val), len(data.tests["test"])) == (14, 2, 4)
    assert data.tests["test"].y.tolist().count(1) == 2
    for split in (data.train, data.val, data.tests["test"]):
        assert_shows(split, split.y)


def test_imagenet(tmp_path):
    copies.imagenet(tmp_path / "imagenet")
    data = load("imagenet", tmp_path, val=0.1, **SMALL)
    assert data.classes == ("n01440764", "n01443537", "n02084071")
    assert (len(data.train), len(data.val), len(data.tests["test"])) == (27, 3, 3)
    assert_shows(data.tests["test"], data.tests["test"].y)
    (tmp_path / "imagenet" / "val" / "ILSVRC2012_val_00000099.JPEG").write_bytes(b"")
    with pytest.raises(UnspurError, match="sort the validation images into folders"):
        load("imagenet", tmp_path)


IMAGE_SETS = [
    "waterbirds",
    "petscapes",
    "isic",
    "celeba",
    "bffhq",
    "urbancars",
    "spawrious",
    "in9",
    "cats_vs_dogs",
    "imagenet",
]


@pytest.mark.parametrize("name", IMAGE_SETS)
def test_a_set_that_is_not_here_says_where_to_get_it_and_where_to_put_it(name, tmp_path):
    with pytest.raises(DataMissing, match=rf"is not on this machine: get it \(.+\) and unpack it so that .*{tmp_path}"):
        load(name, tmp_path)
    with pytest.raises(DataMissing, match="is not on this machine"):
        fetch(name, tmp_path)
    info = describe(dataset_named(name)())
    assert info["files"][0]["state"] == "missing" and "UNSPUR_DATA names DIR" in info["files"][0]["reason"]
    assert info["splits"] is None and info["verified"] is None


def test_an_incomplete_copy_says_what_is_missing(tmp_path):
    root = copies.urbancars(tmp_path / "urbancars")
    shutil.rmtree(root / "bg-0.5_co_occur_obj-0.5" / "val" / "obj-urban_bg-urban_co_occur_obj-urban")
    reason = describe(dataset_named("urbancars")(), tmp_path)["files"][0]["reason"]
    assert reason.startswith(str(root)) and reason.endswith("is missing; unpack the data set again, or complete it.")
    birds = copies.waterbirds(tmp_path / "waterbirds")
    lost = next(birds.rglob("*_0002_14.jpg"))
    lost.unlink()
    with pytest.raises(UnspurError, match=rf"metadata\.csv, row 3: '.*{lost.name}' does not exist"):
        load("waterbirds", tmp_path)
    (birds / "metadata.csv").write_text("img_id,img_filename,y\n")
    with pytest.raises(UnspurError, match=r"metadata\.csv is not the published table: it has no column 'split'"):
        load("waterbirds", tmp_path)


def test_a_table_cannot_name_files_outside_of_its_folder(tmp_path):
    root = copies.waterbirds(tmp_path / "waterbirds")
    copies.photo(tmp_path / "secret.jpg")
    table = root / "metadata.csv"
    lines = table.read_text().splitlines()
    lines[1] = "1,../secret.jpg,0,0,0,/b/x.jpg"
    table.write_text("\n".join(lines) + "\n")
    with pytest.raises(UnspurError, match=r"row 2: '\.\./secret\.jpg' leaves the folder"):
        load("waterbirds", tmp_path)


def test_broken_images_are_named_and_left_out_only_on_demand(tmp_path):
    root = copies.cats_vs_dogs(tmp_path / "cats_vs_dogs", kaggle=False)
    (root / "PetImages" / "Cat" / "7.jpg").write_bytes(b"")  # as 666.jpg of Microsoft's copy
    with pytest.raises(UnspurError, match=r"Cat/7\.jpg is empty \(0 bytes\).*data\.skip_broken=true"):
        load("cats_vs_dogs", tmp_path, **SMALL)
    data = load("cats_vs_dogs", tmp_path, skip_broken=True, **SMALL)
    assert len(data.train) + len(data.val) + len(data.tests["test"]) == 19 and "left out" in data.note


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("waterbirds", {"release": "newest"}, "release must be original or corrected but got 'newest'"),
        ("celeba", {"task": "smile"}, "task must be hair or gender but got 'smile'"),
        ("spawrious", {"variant": "o2o"}, "variant must be o2o_easy, .* or m2m_hard but got 'o2o'"),
        ("spawrious", {"val": 1.0}, r"data\.val must lie in \[0, 1\) but got 1\.0"),
        ("in9", {"size": 0}, r"data\.size must be at least 1 pixel but got 0"),
    ],
)
def test_bad_options_are_one_sentence(name, options, sentence):
    with pytest.raises(UnspurError, match=sentence):
        dataset_named(name)(**options)


def test_images_are_previewed_by_group(tmp_path):
    copies.waterbirds(tmp_path / "waterbirds")
    assert isinstance(preview(load("waterbirds", tmp_path, **SMALL)), Image.Image)
