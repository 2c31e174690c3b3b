import pytest
import torch
from torch import nn

from report.examples import squares, tiny
from unspur.data.base import Dataset
from unspur.evaluation.scores import predict
from unspur.report.maps import Explainer
from unspur.report.pictures import heat, picture
from unspur.report.sections.gallery import TILES, gallery


class LooksAtTheSquare(nn.Module):
    """Says class 0 when the square is there, as a model that learnt nothing else would."""

    def forward(self, x):
        absent = (x[:, 2, :4, :4].mean((1, 2)) < 0.5).long()
        return nn.functional.one_hot(absent, 2).float()


BLUE = Explainer("blue", "", lambda x: x[:, 2])


def shown(data, test="original"):
    return gallery(test, predict(LooksAtTheSquare(), data.tests[test]).argmax(1), data, BLUE)


def test_predictions_are_sorted_by_group_and_by_being_right():
    # The model goes by the square, so every aligned group is right and every conflicting one is wrong, 10 of each.
    found = shown(tiny())
    counts = {row.title: (row.aligned, row.right_count, row.wrong_count) for row in found.rows}
    assert counts == {
        "low, square: absent": (False, 0, 10),
        "low, square: present": (True, 10, 0),
        "high, square: absent": (True, 10, 0),
        "high, square: present": (False, 0, 10),
    }
    assert {(len(row.right), len(row.wrong)) for row in found.rows} == {(0, TILES), (TILES, 0)}


def test_a_tile_shows_its_own_image_map_and_names():
    data = tiny()
    wrong = shown(data).rows[0].wrong
    assert len({tile.index for tile in wrong}) == TILES
    for tile in wrong:
        image = data.tests["original"].x[tile.index]
        assert tile.image == picture(image)
        assert [(layer.name, layer.uri) for layer in tile.layers] == [("blue", heat(image[2] / 255))]
        assert (tile.truth, tile.predicted, tile.right) == ("low", "high", False)


def test_the_same_page_shows_the_same_images():
    assert shown(tiny()) == shown(tiny())


@pytest.mark.parametrize("share", [0, 1])
def test_a_group_that_is_all_right_or_all_wrong_is_no_trouble(share):
    y = torch.full((5,), 1)
    data = tiny()
    only = Dataset(
        "one", data.train, data.val, {"test": squares(y, torch.full((5,), share))}, data.classes, {"square": ("a", "b")}
    )
    (row,) = shown(only, "test").rows
    assert (row.right_count, row.wrong_count) == ((5, 0) if share == 0 else (0, 5))
