import pytest
import torch

from unspur.practice.audit.leak_scores import permuted_labels
from unspur.practice.audit.rare_marks import DIRECTIONS, rare_mark
from unspur.practice.audit.rules import grade_rare


def cells(n=400, spread=0.02, seed=0):
    """Grey cells (n, 8, 8, 3) whose colours differ a little."""
    return 0.5 + spread * torch.randn(n, 8, 8, 3, generator=torch.Generator().manual_seed(seed))


def found(images, y, share=0.03):
    return rare_mark(images, permuted_labels(y, 100, 0), int(y.max()) + 1, share, least_apart=9.0)


@pytest.fixture
def marked():
    images, y = cells(), torch.arange(400) % 2
    images[1:41:2, 3, 4] = torch.tensor([0.1, 0.9, 0.1])  # 20 of 200 images of class 1, none of class 0
    return images, y


def test_a_green_cell_in_one_image_of_ten_is_found_with_its_class(marked):
    mark = found(*marked)
    assert (mark.label, mark.colour, mark.others) == (1, "green", 0) and mark.marked >= 20
    assert mark.p == pytest.approx(1 / 101)  # no permutation puts 20 of 20 images into one class
    assert grade_rare(mark.apart, drawn=False) == "leaks" and grade_rare(mark.apart, drawn=True) == "informative"


def test_a_mark_is_called_what_it_looks_like_and_not_how_it_differs_from_what_is_around_it():
    images, y = cells(), torch.arange(400) % 2
    images += torch.tensor([0.3, 0.05, -0.1])  # skin
    images[1:41:2, 3, 4] = torch.tensor([0.0, 0.6, 0.95])
    assert found(images, y).colour == "blue"


def test_a_mark_that_both_classes_have_is_none(marked):
    images, y = marked
    images[0:40:2, 3, 4] = torch.tensor([0.1, 0.9, 0.1])
    mark = found(images, y)
    assert mark is None or grade_rare(mark.apart, drawn=False) == "informative"


def test_the_tail_of_a_natural_colour_is_informative_though_one_class_has_it_alone():
    images, y = cells(), torch.arange(400) % 2
    greener = torch.rand(200, generator=torch.Generator().manual_seed(1)) * 0.3  # evenly: a slope, no group of its own
    images[1::2, 2, 2, 1] += greener
    mark = found(images, y)
    assert mark.label == 1 and grade_rare(mark.apart, drawn=False) == "informative"


def test_fewer_images_than_the_share_are_not_reported(marked):
    images, y = marked
    assert found(images, y, share=0.2) is None  # 20 of 200 are 10 %


def test_the_region_is_where_the_mark_is():
    images, y = cells(), torch.arange(400) % 2
    images[1:41:2, 3, 4] = torch.tensor([0.1, 0.9, 0.1])
    mark = found(images, y)
    pictures = torch.full((2, 3, 64, 64), 0.5)
    pictures[1, :, 40:48, 16:24] = torch.tensor([0.1, 0.9, 0.1])[:, None, None]
    region = mark.region(pictures)
    assert not region[0].any() and region[1, 40:48, 16:24].all() and int(region[1].sum()) == 144  # and its rim


def test_images_without_colour_are_no_mark_though_they_are_sorted_by_class():
    y = torch.arange(400) // 200  # all lie at 0, and the first of them are of one class
    mark = found(torch.full((400, 8, 8, 3), 0.5), y)
    (direction,) = mark.directions
    assert direction.level == pytest.approx(-1e-6) and mark.apart == 0
    assert mark.region.levels == ((direction.name, direction.level),)
    assert grade_rare(mark.apart, drawn=False) == "informative"


def test_a_mark_that_comes_in_two_colours_is_one_mark_with_both(marked):
    images, y = marked
    images[41:71:2, 6, 1] = torch.tensor([0.9, 0.1, 0.9])  # 15 more images of class 1
    labels = permuted_labels(y, 100, 0)
    mark = rare_mark(images, labels, 2, 0.03, least_apart=9.0)
    assert mark.colour in ("green or purple", "purple or green") and (mark.marked, mark.others) == (35, 0)
    assert int((mark.above > 0).sum()) == 35 and len(mark.region.levels) == 2
    alone = rare_mark(images, labels, 2, 0.03, least_apart=1000.0)  # the second stands out less than that
    assert len(alone.directions) == 1 and alone.marked in (15, 20)


def test_a_mark_of_another_class_does_not_join(marked):
    images, y = marked
    images[0:30:2, 6, 1] = torch.tensor([0.9, 0.1, 0.9])
    mark = rare_mark(images, permuted_labels(y, 100, 0), 2, 0.03, least_apart=9.0)
    assert len(mark.directions) == 1


def test_every_direction_has_a_name():
    assert len(DIRECTIONS) == 10
