"""Copies whose cue comes from another class's image."""

import pytest
import torch

from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.data.masks import BitMask
from unspur.errors import UnspurError
from unspur.parts.cues.cells import Cells
from unspur.parts.cues.noise import Noise
from unspur.parts.cues.region import Region
from unspur.parts.cues.standing_out import StandsOut
from unspur.parts.swapping import (
    CueExchange,
    MaskExchange,
    OneOfEach,
    donors_across_classes,
    require_images,
    showing,
    with_copies,
)
from unspur.train.orders import Place
from unspur.train.recipe import SGD
from unspur.train.session import Session

LEFT = CueExchange((Cells(1, 2, ((0, 0),)),))  # the left half


def images(n=6, classes=3, channels=3):
    """Image i has the value i everywhere; labels go round."""
    x = torch.arange(n, dtype=torch.uint8).reshape(n, 1, 1, 1).expand(n, channels, 4, 4).contiguous()
    return Split(x, torch.arange(n) % classes, {"group": torch.zeros(n).long()})


def test_a_copy_has_the_cue_of_an_image_of_another_class_and_all_else_of_its_own():
    split = images()
    both = with_copies(split, LEFT, copies=2, seed=0)
    assert len(both) == 18 and both.y.tolist() == split.y.tolist() * 3 and not both.attributes
    x = both.x[torch.arange(18)]
    assert torch.equal(x[:6], split.x)
    for place in range(6, 18):
        assert (x[place, :, :, 2:] == place % 6).all()  # the right half is its own
        donor = int(x[place, 0, 0, 0])
        assert (x[place, :, :, :2] == donor).all() and split.y[donor] != split.y[place % 6]


def test_copies_are_the_same_whatever_is_read_with_them_and_others_with_another_seed():
    split = Split(torch.randint(0, 256, (8, 3, 8, 8), generator=stream(0, "x")).to(torch.uint8), torch.arange(8) % 2)
    both = with_copies(split, CueExchange((Noise(),)), copies=3, seed=1)
    whole = both.x[torch.arange(32)]
    assert torch.equal(whole[[20, 9]], both.x[torch.tensor([20, 9])])
    assert torch.equal(whole[9:20], both.subset(torch.arange(9, 20)).x[torch.arange(11)])
    assert not torch.equal(whole, with_copies(split, CueExchange((Noise(),)), copies=3, seed=2).x[torch.arange(32)])


def test_of_a_mark_that_few_images_of_one_class_have_half_the_copies_of_every_class_have_one():
    x = torch.full((400, 3, 32, 32), 128, dtype=torch.uint8)
    y = torch.arange(400) % 2
    x[1:17:2, :, 8:16, 8:16] = torch.tensor([20, 230, 20], dtype=torch.uint8)[:, None, None]  # 8 of 200 of class 1
    mark = Region(StandsOut((("green", 0.3),)))
    copies = with_copies(Split(x, y), CueExchange((mark,)), copies=4, seed=0, originals=False)
    shows = showing([mark], copies.x)
    # by images of another class 4 % of class 0's copies would have it, and none of class 1's
    for label in (0, 1):
        assert abs(float(shows[copies.y == label].float().mean()) - 0.5) < 0.06
    both = with_copies(Split(x, y), CueExchange((mark,)), copies=1, seed=0, share=0.5)
    shows = showing([mark], both.x)
    # originals show it in 0 and 4 % of a class: copies in 52 and 48 %, so that it is 26 % in either class
    for label in (0, 1):
        assert abs(float(shows[both.y == label].float().mean()) - 0.26) < 0.05
    assert int(showing([mark], x).sum()) == 8


def test_grey_images_stay_grey():
    both = with_copies(images(channels=1), LEFT, copies=1, seed=0)
    assert both.sample_shape == (1, 4, 4)
    assert (both.x[torch.tensor([7])][..., 2:] == 1).all()


def test_what_a_mask_hides_comes_from_the_donors_same_place():
    hidden = torch.zeros(2, 2, 2, dtype=torch.bool)
    hidden[0, 0, 0] = True
    x, donors = torch.zeros(2, 3, 2, 2), torch.ones(2, 3, 2, 2)
    made = MaskExchange(BitMask.of(hidden))(x, donors, torch.tensor([1, 0]))
    assert made[:, 0].flatten(1).tolist() == [[0, 0, 0, 0], [1, 0, 0, 0]]  # the second image is number 0


def test_donors_are_of_every_other_class_alike_often():
    y = torch.tensor([0] * 90 + [1] * 9 + [2])
    donors = y[donors_across_classes(y, 400, stream(0, "donors"))]
    of_zero = torch.bincount(donors[:, :90].flatten(), minlength=3) / (400 * 90)
    # half and half, although class 1 has nine times as many images as class 2
    assert of_zero[0] == 0 and abs(of_zero[1] - 0.5) < 0.02


@pytest.mark.parametrize("share", [2 / 3, 0.8, 1.0])
def test_whatever_the_share_every_classs_cue_is_as_likely_with_each_label(share):
    y = torch.tensor([0] * 90 + [1] * 9 + [2] * 3)
    donors = y[donors_across_classes(y, 3000, stream(0, "donors"), share)]
    for label in range(3):
        copied = torch.bincount(donors[:, y == label].flatten(), minlength=3) / donors[:, y == label].numel()
        cues = share * copied
        cues[label] += 1 - share  # of the images that stay as they are
        assert bool(((cues - 1 / 3).abs() < 0.02).all())


def test_what_is_to_mislead_has_no_donor_of_its_own_class():
    split = images(n=40, classes=2)
    left = with_copies(split, LEFT, copies=2, seed=0, originals=False).x[torch.arange(80)][:, :, 0, 0]
    own = split.x[torch.arange(40)][:, :, 0, 0].repeat(2, 1)
    assert not bool((left == own).all(1).any())


def test_an_epoch_shows_every_image_once_and_the_wanted_share_as_copies():
    split = images(n=400, classes=2)
    both = with_copies(split, LEFT, copies=3, seed=0)
    order, recipe = OneOfEach(copies=3, share=0.75), SGD(batch_size=40)
    place = Place(both, 40, "training", Session(seed=0))
    assert order.rounds(len(both), recipe, 1) == [10, 10, 10, 10]
    epochs = [torch.cat([drawn.batch.index for drawn in order.batches(place, number, 0, 10)]) for number in (0, 1)]
    for index in epochs:
        assert sorted((index % 400).tolist()) == list(range(400))
        assert abs(float((index >= 400).float().mean()) - 0.75) < 0.07  # three deviations of 400 draws
    assert not torch.equal(epochs[0].sort().values, epochs[1].sort().values)  # other copies


def test_vectors_and_a_single_class_are_refused():
    with pytest.raises(UnspurError, match=r"images of 1 or 3 channels only, but these samples have the shape \(5,\)"):
        require_images(Split(torch.zeros(4, 5), torch.tensor([0, 1, 0, 1])))
    with pytest.raises(UnspurError, match="all of one class; add images of another"):
        require_images(images(classes=1))
