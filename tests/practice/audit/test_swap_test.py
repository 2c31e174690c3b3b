"""The swap test of a mark that few images have: pasted from those that have it, beside the place merely covered."""

import pytest
import torch

from unspur.parts.cues.region import Region
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.findings import RARE, Finding
from unspur.practice.audit.model import Model
from unspur.practice.audit.swap_test import swap_examples, swap_test

EACH = 100


def blue(images):
    return (images[:, 2] > 0.9) & (images[:, 0] < 0.1)


@pytest.fixture
def data():
    """Grey images of two classes; the first ten of class 1 have a blue square."""
    draw = torch.Generator().manual_seed(0)
    pictures = torch.randint(90, 160, (2 * EACH, 3, 16, 16), generator=draw, dtype=torch.uint8)
    pictures[EACH : EACH + 10, :, 4:8, 4:8] = torch.tensor([0, 0, 255], dtype=torch.uint8)[:, None, None]
    y = torch.arange(2 * EACH) // EACH
    number = torch.arange(2 * EACH)
    nothing = torch.zeros(2 * EACH, 1)
    return Collected(
        y=y, classes=("a", "b"), names=[str(each) for each in number], total=len(y), facts=None, cells=nothing,
        borders=nothing, scene={}, traces={}, flatness=0.0, pictures=pictures, pictured=number, unread={},
    )  # fmt: skip


@pytest.fixture
def finding(data):
    margins = torch.zeros(2 * EACH, 2)
    margins[:, 1] = -0.1
    margins[EACH : EACH + 10, 1] = 0.3
    return Finding(
        kind="place", family=RARE, what="a blue mark", grade="leaks", tells_label=0.55, ci95=(0.5, 0.6), p=0.01,
        separation=20.0, where=None, margins=margins, index=torch.arange(2 * EACH), cue=Region(blue),
    )  # fmt: skip


def looked(answers, finding, data):
    def predict(images):
        says = answers(images).long()
        return torch.nn.functional.one_hot(says, 2).float()

    model = Model("made", (predict,), (torch.arange(2 * EACH),))
    return swap_test(model, finding, data), swap_examples(model, finding, data)


def test_a_model_that_follows_the_mark_does_so_for_every_image_of_the_other_class(data, finding):
    reliance, shown = looked(lambda images: blue(images).flatten(1).any(1), finding, data)
    assert (reliance.follows_cue, reliance.control, reliance.images) == (1.0, 0.0, EACH) and reliance.leans
    assert {(swap.label, swap.donor_label, swap.before, swap.after) for swap in shown} == {(0, 1, 0, 1)}


def test_a_model_that_is_put_off_by_anything_pasted_there_does_not_lean(data, finding):
    plain = data.pictures[:EACH].float() / 255

    def changed(images):
        same = (images[:, None] == plain[None]).flatten(3).all(3).all(2).any(1)
        return ~same

    reliance, _ = looked(changed, finding, data)
    assert reliance.follows_cue == reliance.control == 1.0 and not reliance.leans


def test_without_two_images_that_have_the_mark_nothing_is_measured(data, finding):
    finding.margins[EACH + 1 : EACH + 10, 1] = -0.1
    assert looked(lambda images: images[:, 0, 0, 0] > 2, finding, data) == (None, [])
