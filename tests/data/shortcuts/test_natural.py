import pytest
import torch

from data.photos import noise
from unspur.data.mini.digits import load_mini
from unspur.data.shortcuts.corruptions import CORRUPTIONS, corrupt
from unspur.data.shortcuts.natural import SHORTCUTS, Border, ColouredSquare, Corruption, named_colours, shortcut_named
from unspur.errors import UnspurError

RED, GREEN = (255, 0, 0), (0, 255, 0)


def spots(n=4, height=48, width=64):
    return torch.from_numpy(noise(height, width).copy()).permute(2, 0, 1).expand(n, 3, height, width).contiguous()


def seeded():
    return torch.Generator().manual_seed(0)


def test_a_square_has_the_values_colour_and_a_seventh_of_the_shorter_side():
    planted = ColouredSquare((RED, GREEN)).apply(spots(2), torch.tensor([0, 1]), seeded())
    assert planted[0, :, :7, :7].unique(dim=1).unique().tolist() == [0, 255]  # 48 / 7 = 6.9
    assert planted[:, :, 6, 6].tolist() == [list(RED), list(GREEN)]
    assert torch.equal(planted[:, :, 7:], spots(2)[:, :, 7:]) and torch.equal(planted[..., 7:], spots(2)[..., 7:])


def test_a_border_frames_the_image_and_leaves_the_inside_alone():
    planted = Border((RED, GREEN)).apply(spots(2), torch.tensor([1, 0]), seeded())
    for row, column in ((0, 0), (2, 30), (47, 63), (20, 61)):  # 48 / 16 = 3 pixels
        assert planted[:, :, row, column].tolist() == [list(GREEN), list(RED)]
    assert torch.equal(planted[:, :, 3:-3, 3:-3], spots(2)[:, :, 3:-3, 3:-3])


def test_a_watermark_is_in_the_lower_right_corner_and_differs_from_value_to_value():
    chosen = shortcut_named("watermark", 3)
    assert chosen.values == ("(c) A", "(c) B", "(c) C")
    planted = chosen.shortcut.apply(spots(3), torch.tensor([0, 1, 2]), seeded())
    changed = (planted != spots(3)).any(1)
    assert not changed[:, :24].any() and not changed[..., :16].any()  # the upper half and the left
    assert all(0.02 < float(part.float().mean()) < 0.2 for part in changed)
    assert not torch.equal(planted[0], planted[1]) and not torch.equal(planted[1], planted[2])
    # On black and on white something can be read: both light and dark ink.
    for level in (0, 255):
        flat = torch.full((1, 3, 48, 64), level, dtype=torch.uint8)
        marked = chosen.shortcut.apply(flat, torch.tensor([0]), seeded())
        assert abs(marked.int() - level).max() > 150


def test_a_corruption_is_the_one_that_the_value_names():
    values = torch.tensor([1, 9, 1, 0])
    planted = Corruption().apply(spots(), values, seeded())
    names = list(CORRUPTIONS)
    for number, value in enumerate(values.tolist()):  # none of these draws anything
        expected = corrupt(spots(1), names[value], seeded())[0]
        assert torch.equal(planted[number], expected), names[value]


def test_a_domino_has_the_values_digit_above_the_image():
    planted = shortcut_named("domino", 10).shortcut.apply(spots(2, 20, 28), torch.tensor([3, 8]), seeded())
    assert planted.shape == (2, 3, 48, 28) and torch.equal(planted[:, :, 28:], spots(2, 20, 28))
    digits = load_mini()[0]
    for image, value in zip(planted[:, :1, :28], (3, 8), strict=True):
        assert bool((digits.x[digits.y == value] == image).flatten(1).all(1).any())


@pytest.mark.parametrize("name", SHORTCUTS)
@pytest.mark.parametrize("channels", [1, 3])
def test_every_shortcut_tells_classes_apart_and_leaves_the_originals_alone(name, channels):
    chosen = shortcut_named(name, 3)
    x = spots(3)[:, :channels].contiguous()
    kept = x.clone()
    planted = chosen.shortcut.apply(x, torch.arange(3), seeded())
    assert torch.equal(x, kept) and planted.dtype == torch.uint8 and planted.shape[1] == 3
    assert len({image.numpy().tobytes() for image in planted}) == 3 and len(set(chosen.values)) == len(chosen.values)
    again = chosen.shortcut.apply(x, torch.arange(3), seeded())
    assert torch.equal(planted, again)


def test_many_classes_get_many_colours_up_to_a_limit():
    assert len(set(named_colours(40).values())) == 40 and list(named_colours(2)) == ["red", "green"]
    with pytest.raises(UnspurError, match="No more than 60 colours can be told apart, too few for 61 classes"):
        shortcut_named("border", 61)
    with pytest.raises(UnspurError, match="There are 10 corruptions, too few for 11 classes"):
        shortcut_named("corruption", 11)
    with pytest.raises(UnspurError, match=r"Unknown shortcut 'boarder'\. Did you mean 'border'\?"):
        shortcut_named("boarder", 2)


@pytest.mark.parametrize("name", ["square", "border", "watermark", "domino", "disc"])
def test_a_shortcut_s_region_is_where_it_draws(name):
    # what differs between values lies in the region, and what lies outside is as it was
    image = torch.randint(256, (1, 3, 40, 60), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    shortcut = shortcut_named(name, 3).shortcut
    planted = torch.cat([shortcut.apply(image, torch.tensor([value]), torch.Generator()) for value in range(3)])
    region = shortcut.region(planted.shape[1:])
    assert region.any() and (planted[:, :, ~region] == image.flatten(2)[:, :, (~region[-40:]).flatten()]).all()
    assert (planted != planted[:1]).any(0).any(0)[region].any()


@pytest.mark.parametrize("name", ["color", "corruption"])
def test_what_changes_the_whole_image_has_no_region(name):
    assert shortcut_named(name, 3).shortcut.region(torch.Size([3, 8, 8])) is None
