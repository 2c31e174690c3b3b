import math

import pytest
import torch

from unspur.data.shortcuts.disc import Disc
from unspur.errors import UnspurError


def image(height=40, width=60):
    return torch.full((1, 3, height, width), 100, dtype=torch.uint8)


def drawn(disc, value=0, **size):
    return disc.apply(image(**size), torch.tensor([value]), torch.Generator())[0]


def test_half_a_disc_lies_at_the_right_edge():
    covered = drawn(Disc(((255, 0, 0),)))[1] < 50  # of 100: by half or more
    rows, columns = covered.nonzero().T
    # radius 0.25 * 40 = 10 around row 20 and the right edge, column 60
    assert columns.max() == 59 and columns.min() == 50 and rows.min() == 10 and rows.max() == 29
    assert abs(int(covered.sum()) - math.pi * 100 / 2) < 5


@pytest.mark.parametrize(("row", "column", "inside"), [(0, 0, (0, 0)), (1, 1, (39, 59)), (0.5, 0.5, (20, 30))])
def test_a_disc_lies_where_it_is_told_to(row, column, inside):
    disc = Disc(((0, 0, 255),), radius=0.1, row=row, column=column)
    assert drawn(disc)[:, inside[0], inside[1]].tolist() == [0, 0, 255]
    assert disc.region(torch.Size([3, 40, 60]))[inside]


def test_the_region_is_every_pixel_that_changes():
    disc = Disc(((255, 0, 0), (0, 255, 0)))
    for value in (0, 1):
        assert torch.equal((drawn(disc, value) != 100).any(0), disc.region(torch.Size([3, 40, 60])))


def test_each_value_has_its_colour():
    images = image().expand(2, -1, -1, -1)
    planted = Disc(((255, 0, 0), (0, 255, 0))).apply(images, torch.tensor([1, 0]), torch.Generator())
    assert planted[:, :, 20, 59].tolist() == [[0, 255, 0], [255, 0, 0]]


def test_without_a_colour_it_takes_the_image_s_own_around_it():
    # the left half is black; a disc at the right edge sees the right half only
    picture = image()
    picture[..., :30] = 0
    picture[..., 25:35, 58:] = 250  # what lies under the disc does not matter
    planted = Disc((None,)).apply(picture, torch.tensor([0]), torch.Generator())
    assert (planted[..., 30:55] == 100).all() and planted[0, :, 20, 59].tolist() == [100, 100, 100]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"radius": 0}, "radius must be above 0 but got 0"),
        ({"row": 1.5}, r"row is a share of the image and must lie in \[0, 1\] but got 1.5"),
    ],
)
def test_a_disc_that_makes_no_sense_is_an_error(options, sentence):
    with pytest.raises(UnspurError, match=sentence):
        Disc(**options)


def test_a_disc_larger_than_the_image_has_nothing_around_it():
    with pytest.raises(UnspurError, match="leaves nothing of the image around it"):
        drawn(Disc((None,), radius=2))
