import torch

from unspur.parts.cues.standing_out import COLOURS, DIRECTIONS, StandsOut, stand_out


def test_every_colour_lies_furthest_in_the_direction_of_its_name():
    wheel = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "yellow": (1, 1, 0), "light": (1, 1, 1)}
    for name, colour in wheel.items():
        means = torch.full((1, 3, 8, 8), 0.5)
        means[0, :, 2, 5] = torch.tensor(colour)
        furthest = stand_out(means)[0, :, 2, 5]
        near = furthest.argmax().item() if name == "light" else furthest[: len(COLOURS)].argmax().item()
        # The axes are skewed, so that pure colours lie within a neighbour of their names.
        assert min((near - DIRECTIONS.index(name)) % 8, (DIRECTIONS.index(name) - near) % 8) <= 1, (name, near)


def test_the_place_is_where_the_colour_is_and_an_image_without_it_has_none():
    pictures = torch.full((2, 3, 64, 64), 0.5)
    pictures[1, :, 40:48, 16:24] = torch.tensor([0.1, 0.9, 0.1])[:, None, None]
    region = StandsOut((("green", 0.3),))(pictures)
    # eight pixels each way, and a fine cell of two on each side: a rim that fills its cells in part belongs to the mark
    assert not region[0].any() and region[1, 38:50, 14:26].all() and int(region[1].sum()) == 12 * 12


def test_a_mark_of_two_colours_is_found_in_either():
    pictures = torch.full((3, 3, 64, 64), 0.5)
    pictures[0, :, 40:48, 16:24] = torch.tensor([0.1, 0.9, 0.1])[:, None, None]
    pictures[1, :, 8:16, 32:40] = torch.tensor([0.1, 0.1, 0.9])[:, None, None]
    region = StandsOut((("green", 0.3), ("blue", 0.3)))(pictures)
    assert region[0, 40:48, 16:24].all() and region[1, 8:16, 32:40].all() and not region[2].any()
    assert not StandsOut((("green", 0.3),))(pictures)[1].any()
