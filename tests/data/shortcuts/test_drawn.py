import pytest
import torch

from unspur.data.base import Images
from unspur.data.shortcuts.drawn import Companion, OneHotCode, Square, Tint, to_rgb
from unspur.errors import UnspurError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


SIDES = ("left", "right", "above", "below")


def grey(count: int = 3, height: int = 8, width: int = 12) -> torch.Tensor:
    return torch.full((count, 1, height, width), 100, dtype=torch.uint8)


def test_a_square_covers_its_pixels_where_the_value_is_1_and_nothing_else():
    images = grey(2)
    planted = Square(row=1, column=-5, size=3, colour=(10, 20, 30)).apply(images, torch.tensor([0, 1]), generator())
    assert planted.shape == (2, 3, 8, 12) and (planted[0] == 100).all()
    # column -5 of 12 is column 7
    assert planted[1, :, 1:4, 7:10].flatten(1).unique(dim=1).squeeze().tolist() == [10, 20, 30]
    assert (planted[1] == 100).sum() == 3 * (8 * 12 - 9)
    assert (images == 100).all()  # the old images stay as they were


def test_a_square_can_be_planted_in_colour_images():
    planted = Square().apply(to_rgb(grey(1)), torch.tensor([1]), generator())
    assert planted[0, :, 0, 0].tolist() == [0, 0, 255] and planted[0, :, 4, 4].tolist() == [100, 100, 100]


@pytest.mark.parametrize("square", [Square(size=9), Square(row=6), Square(column=-3), Square(row=-9)])
def test_a_square_that_does_not_fit_is_an_error(square):
    with pytest.raises(UnspurError, match="does not fit into images of 8x12"):
        square.apply(grey(), torch.tensor([1, 1, 1]), generator())


def test_a_code_is_255_in_the_column_of_its_value_and_0_in_the_others():
    planted = OneHotCode(10).apply(grey(2), torch.tensor([0, 7]), generator())
    assert planted[0, 0, 0].tolist() == [255] + [0] * 9 + [100, 100]
    assert planted[1, 0, 0].tolist() == [0] * 7 + [255, 0, 0, 100, 100]
    assert (planted[:, :, 1:] == 100).all()
    with pytest.raises(UnspurError, match="A code of 13 values does not fit into images 12 pixels wide"):
        OneHotCode(13).apply(grey(), torch.tensor([0, 0, 0]), generator())


def test_a_tint_multiplies_each_channel():
    images = torch.tensor([0, 100, 255], dtype=torch.uint8).reshape(1, 1, 1, 3)
    planted = Tint(colours=((255, 51, 0),), jitter=0).apply(images, torch.tensor([0]), generator())
    # 51 / 255 = 0.2: 100 becomes 20 and 255 becomes 51
    assert planted[0, :, 0].tolist() == [[0, 100, 255], [0, 20, 51], [0, 0, 0]]


def test_a_tint_keeps_what_colour_an_image_has():
    images = torch.tensor([200, 100, 50], dtype=torch.uint8).reshape(1, 3, 1, 1)
    planted = Tint(colours=((255, 51, 0),), jitter=0).apply(images, torch.tensor([0]), generator())
    assert planted.flatten().tolist() == [200, 20, 0]


def test_jitter_varies_the_colour_from_sample_to_sample_and_not_within_one():
    images = torch.full((4000, 1, 2, 2), 255, dtype=torch.uint8)
    planted = Tint(colours=((128, 128, 128),), jitter=0.05).apply(images, torch.zeros(4000).long(), generator())
    assert (planted == planted[:, :, :1, :1]).all()
    colours = planted[:, :, 0, 0].float()
    # 0.05 * 255 = 12.75 for each channel, and no channel follows another
    assert (colours.std(0) - 12.75).abs().max() < 0.6
    assert torch.corrcoef(colours.T).fill_diagonal_(0).abs().max() < 0.08


def test_a_companion_is_an_image_of_the_value_s_class():
    labels = torch.tensor([2, 0, 1, 0])
    pool = (labels * 10 + torch.arange(4)).to(torch.uint8).reshape(4, 1, 1, 1).expand(4, 1, 8, 12)
    values = torch.tensor([0, 1, 2]).repeat(50)
    planted = Companion(pool=Images(pool, labels)).apply(grey(150), values, generator())
    assert planted.shape == (150, 1, 8, 24)
    assert (planted[..., :12] == 100).all()
    shown = planted[:, 0, 0, 12]
    assert set(shown[values == 0].tolist()) == {1, 3}  # both images of class 0 turn up
    assert set(shown[values == 1].tolist()) == {12} and set(shown[values == 2].tolist()) == {20}


@pytest.mark.parametrize(
    ("where", "corner"), [("right", (0, 12)), ("left", (0, 0)), ("above", (0, 0)), ("below", (8, 0))]
)
def test_a_companion_stands_on_the_side_that_was_asked_for(where, corner):
    pool = torch.full((1, 3, 8, 12), 7, dtype=torch.uint8)
    planted = Companion(where, Images(pool, torch.tensor([0]))).apply(grey(1), torch.tensor([0]), generator())
    assert planted.shape == ((1, 3, 8, 24) if where in ("left", "right") else (1, 3, 16, 12))
    row, column = corner
    assert (planted[0, :, row : row + 8, column : column + 12] == 7).all()
    assert (planted == 100).sum() == 3 * 8 * 12  # the grey image took on three channels beside the colour one


def test_a_companion_of_a_class_without_images_is_an_error():
    with pytest.raises(UnspurError, match="There is no image of class 1"):
        Companion(pool=Images(grey(1), torch.tensor([0]))).apply(grey(1), torch.tensor([1]), generator())


@pytest.mark.parametrize(
    ("shortcut", "values"),
    [
        (Square(row=1, column=-5, size=3), [1, 1, 1]),
        (OneHotCode(5), [0, 2, 4]),
        *((Companion(where, Images(grey(1) + 1, torch.tensor([0]))), [0, 0, 0]) for where in SIDES),
    ],
)
def test_a_shortcut_s_region_is_where_it_draws(shortcut, values):
    planted = shortcut.apply(grey(), torch.tensor(values), generator())
    changed = (planted != 100).any(0).any(0)  # every pixel that it draws is no longer 100 in one sample or another
    assert torch.equal(shortcut.region(planted.shape[1:]), changed)


def test_a_tint_shares_the_pixels_of_the_class():
    assert Tint().region(torch.Size([3, 8, 12])) is None
