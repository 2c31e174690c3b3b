import torch

from data import copies
from unspur.data.base import groups_of
from unspur.data.catalog import dataset_named, load
from unspur.data.info import describe
from unspur.data.sets.isic import COLOURS


def isic(tmp_path):
    copies.isic(tmp_path / "isic2017")
    return load("isic", tmp_path, size=64)


def pixels(split):
    return split.x[torch.arange(len(split))]


def test_the_groups_are_benign_without_and_with_a_patch_and_melanoma_without(tmp_path):
    data = isic(tmp_path)
    assert data.classes == ("benign", "melanoma") and data.attribute_values == {"coloured_patch": ("none", "patch")}
    for split in (data.train, data.val, data.tests["test"]):
        assert groups_of(split).keys == ((0, 0), (0, 1), (1, 0))
        assert groups_of(split).id.bincount().tolist() == [2, 1, 5]


def test_discs_are_pasted_on_the_test_melanomas_and_on_nothing_else(tmp_path):
    data = isic(tmp_path)
    test, patch, control = (data.tests[name] for name in ("test", "patch", "control"))
    plain = pixels(test)[test.y == 1]
    # half a disc of 64 / 4 = 16 pixels: 402 of 4,096 pixels, and a rim of smoothed ones; all else is as it was
    for split in (patch, control):
        changed = (pixels(split) != plain).any(1).flatten(1).sum(1)
        assert (split.y == 1).all() and (changed <= 430).all()
    assert ((pixels(patch) != plain).any(1).flatten(1).sum(1) > 380).all()
    assert patch.attributes["coloured_patch"].tolist() == [1] * 5
    assert control.attributes["coloured_patch"].tolist() == [0] * 5
    assert data.without_shortcut == {"patch": "control"}


def test_a_patch_has_a_colour_of_real_ones_and_a_control_that_of_the_skin_around_it(tmp_path):
    data = isic(tmp_path)
    skin = pixels(data.tests["control"])
    for number, image in enumerate(pixels(data.tests["patch"])):
        disc = (image == torch.tensor(COLOURS[number % len(COLOURS)]).reshape(3, 1, 1)).all(0)
        assert disc.sum() > 350  # the images take turns with the colours
        # melanoma number n of the copy lies on skin of (200, 153 + n, 130)
        assert (skin[number][:, disc] == torch.tensor([200, 153 + number, 130]).reshape(3, 1)).all()


def test_the_disc_leaves_the_lesion_alone(tmp_path):
    data = isic(tmp_path)
    test, patch = data.tests["test"], data.tests["patch"]
    lesion = (pixels(test)[test.y == 1] == 0).all(1)
    assert lesion[:4].any(2).any(1).all()
    assert (pixels(patch).amax(1)[lesion] == 0).all()


def test_the_same_disc_shows_whichever_way_an_image_is_read(tmp_path):
    patch = isic(tmp_path).tests["patch"]
    whole, some = pixels(patch), torch.tensor([3, 1])
    assert torch.equal(patch.x[some], whole[some])
    assert torch.equal(pixels(patch.subset(some)), whole[some])
    assert torch.equal(
        torch.cat([batch.x for batch in patch.batches([some, some])]) * 255, whole[some.repeat(2)].float()
    )


def test_counts_are_compared_without_opening_an_image(tmp_path):
    root = copies.isic(tmp_path / "isic2017")
    (root / "images/ISIC_test_4.png").write_bytes(b"broken")
    info = describe(dataset_named("isic")(), tmp_path)
    found = {(count["split"], *count["groups"][0]): count["found"] for count in info["counts"]}
    assert found["test patch", "melanoma", "patch"] == 5 == found["test control", "melanoma", "none"]
    assert found["train", "melanoma", "patch"] == 0 and info["verified"] is False
