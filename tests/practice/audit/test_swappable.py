"""What of an audit's findings is swapped."""

import torch

from unspur.parts.cues.cells import Cells
from unspur.parts.cues.colour import Colour
from unspur.parts.cues.noise import Noise
from unspur.parts.cues.region import Region
from unspur.practice.audit.findings import Finding, Reliance
from unspur.practice.audit.swappable import swappable

CORNER = Cells(8, 8, ((0, 0), (0, 1)))
FOLLOWS, IGNORES = Reliance(0.8, 0.1, (0.6, 0.8), 100), Reliance(0.1, 0.1, (-0.1, 0.1), 100)


def finding(grade, cue, reliance=None):
    return Finding(
        "place", "x", "x", grade, 0.9, (0.8, 1), 0.01, 3, None, torch.zeros(0), torch.zeros(0), cue, reliance
    )


def test_of_leaks_those_are_swapped_that_the_model_follows():
    both = [finding("leaks", Noise(), IGNORES), finding("leaks", CORNER, FOLLOWS)]
    assert swappable(both) == ("cells:8x8:c000000000000000",)


def test_where_no_leak_is_followed_or_tested_all_of_them_are_swapped():
    both = [finding("leaks", Noise(), IGNORES), finding("leaks", CORNER)]
    assert swappable(both) == ("noise", "cells:8x8:c000000000000000")


def test_context_is_swapped_only_where_the_model_follows_it_and_nothing_leaks():
    scene = finding("context", Colour(), FOLLOWS)
    assert swappable([scene]) == ("cast",)  # a colour that goes with the class has its own brightness
    assert swappable([finding("context", Colour(), IGNORES)]) == ()
    assert swappable([finding("leaks", Noise(), FOLLOWS), scene]) == ("noise",)


def test_what_the_object_may_explain_is_never_swapped():
    assert swappable([finding("informative", CORNER, FOLLOWS)]) == ()


def test_cells_that_would_hold_the_object_itself_are_not_swapped():
    # 45 of 64 cells are 70 %: one more is too many
    cells = tuple((place // 8, place % 8) for place in range(45))
    assert swappable([finding("context", Cells(8, 8, cells[:44]), FOLLOWS)]) != ()
    assert swappable([finding("context", Cells(8, 8, cells), FOLLOWS)]) == ()


def test_what_only_a_network_can_find_has_no_text_and_is_left_out():
    assert swappable([finding("leaks", Region(lambda images: images[:, 0] > 0), FOLLOWS)]) == ()
