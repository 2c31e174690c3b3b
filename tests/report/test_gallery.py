import pytest
import torch
from torch import nn

from report.examples import squares, tiny
from unspur.data.base import Dataset, Split
from unspur.models.catalog import build_model
from unspur.report.gallery import MOST_ROWS, TILES, Explainer, explainer, gallery, samples, split_rows
from unspur.report.pictures import heat, picture


class LooksAtTheSquare(nn.Module):
    """Says class 0 when the square is there, as a model that learnt nothing else would."""

    def forward(self, x):
        absent = (x[:, 2, :4, :4].mean((1, 2)) < 0.5).long()
        return nn.functional.one_hot(absent, 2).float()


BLUE = Explainer("blue", "", lambda x: x[:, 2])


def many_groups() -> Dataset:
    """Ten classes by ten values, value = class in training: 100 groups in the test set, 10 of them aligned."""
    y, value = torch.arange(100) % 10, torch.arange(100) // 10
    images = torch.zeros(100, 3, 4, 4, dtype=torch.uint8)
    train = Split(images[:10], torch.arange(10), {"colour": torch.arange(10)})
    names = tuple("abcdefghij")
    return Dataset("many", train, train, {"test": Split(images, y, {"colour": value})}, names, {"colour": names})


def test_predictions_are_sorted_by_group_and_by_being_right():
    # The model goes by the square, so every aligned group is right and every conflicting one is wrong, 10 of each.
    shown = gallery("original", LooksAtTheSquare(), tiny(), BLUE)
    counts = {row.title: (row.aligned, row.right_count, row.wrong_count) for row in shown.rows}
    assert counts == {
        "low, square: absent": (False, 0, 10),
        "low, square: present": (True, 10, 0),
        "high, square: absent": (True, 10, 0),
        "high, square: present": (False, 0, 10),
    }
    assert {(len(row.right), len(row.wrong)) for row in shown.rows} == {(0, TILES), (TILES, 0)}


def test_a_tile_shows_its_own_image_map_and_names():
    data = tiny()
    wrong = gallery("original", LooksAtTheSquare(), data, BLUE).rows[0].wrong
    assert len({tile.index for tile in wrong}) == TILES
    for tile in wrong:
        image = data.tests["original"].x[tile.index]
        assert tile.image == picture(image)
        assert [(layer.name, layer.uri) for layer in tile.layers] == [("blue", heat(image[2] / 255))]
        assert (tile.truth, tile.predicted, tile.right) == ("low", "high", False)


def test_the_same_page_shows_the_same_images():
    assert gallery("original", LooksAtTheSquare(), tiny(), BLUE) == gallery(
        "original", LooksAtTheSquare(), tiny(), BLUE
    )


def test_many_groups_are_pooled_into_aligned_and_conflicting():
    data = many_groups()
    rows = split_rows(data.tests["test"], data)
    assert rows.pooled
    assert [(title, aligned, len(index)) for title, aligned, index in rows.rows] == [
        ("all aligned groups", True, 10),
        ("all conflicting groups", False, 90),
    ]


def test_many_classes_without_attributes_are_one_row():
    y = torch.arange(2 * (MOST_ROWS + 1)) // 2
    split = Split(torch.zeros(len(y), 3, 4, 4, dtype=torch.uint8), y)
    data = Dataset("plain", split, split, {"test": split}, tuple(map(str, range(MOST_ROWS + 1))))
    (row,) = split_rows(split, data).rows
    assert (row[0], row[1], len(row[2])) == ("all classes", None, len(y))


def test_training_images_are_shown_for_every_group_with_its_size():
    pooled, rows = samples(tiny())
    assert not pooled
    assert [(row.title, row.aligned, row.count, len(row.images)) for row in rows] == [
        ("low, square: absent", False, 2, 2),
        ("low, square: present", True, 18, 12),
        ("high, square: absent", True, 18, 12),
        ("high, square: present", False, 2, 2),
    ]


def test_vectors_have_no_pictures():
    split = Split(torch.zeros(4, 5), torch.tensor([0, 0, 1, 1]))
    _, rows = samples(Dataset("vectors", split, split, {"test": split}, ("a", "b")))
    assert [(row.count, row.images) for row in rows] == [(2, ()), (2, ())]


def test_a_convolutional_model_is_explained_by_class_activation_maps():
    data = tiny()
    explain = explainer(build_model("small_cnn", data).eval(), data.sample_shape)
    maps = explain.maps(data.train.batch(torch.arange(3)).x)
    assert explain.name == "XGradCAM"
    assert len(maps) == 3 and maps.shape[1:] < (16, 16)  # at map resolution


def test_a_model_without_a_spatial_layer_is_explained_by_input_gradients_and_says_so():
    data = tiny()
    model = build_model("fcn", data).eval()
    explain = explainer(model, data.sample_shape)
    x = data.train.batch(torch.arange(3)).x
    assert explain.name == "input gradient" and "no spatial layer" in explain.sentence
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(model(x).max(1).values.sum(), x)
    assert torch.allclose(explain.maps(x.detach()), gradient.abs().amax(1), atol=1e-6)


@pytest.mark.parametrize("share", [0, 1])
def test_a_group_that_is_all_right_or_all_wrong_is_no_trouble(share):
    y = torch.full((5,), 1)
    data = tiny()
    only = Dataset(
        "one", data.train, data.val, {"test": squares(y, torch.full((5,), share))}, data.classes, {"square": ("a", "b")}
    )
    (row,) = gallery("test", LooksAtTheSquare(), only, BLUE).rows
    assert (row.right_count, row.wrong_count) == ((5, 0) if share == 0 else (0, 5))
