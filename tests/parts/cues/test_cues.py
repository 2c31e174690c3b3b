"""Every cue can be measured, outlined, swapped and taken away, and leaves its arguments alone."""

import pytest
import torch

from unspur.errors import UnspurError
from unspur.parts.cues.cells import Cells
from unspur.parts.cues.colour import Colour
from unspur.parts.cues.compression import Compression, compressed
from unspur.parts.cues.noise import Noise
from unspur.parts.cues.region import Region
from unspur.parts.cues.sharpness import Sharpness
from unspur.parts.cues.tone import Tone


def bright(images):
    return images.mean(1) > 0.95


CUES = [
    Cells(4, 4, ((0, 0), (3, 3))),
    Colour(),
    Tone(),
    Tone(channels=True),
    Noise(),
    Sharpness(),
    Compression(),
    Region(bright),
]


def smooth(count=4, side=32, seed=0):
    """Smooth random pictures, mid-grey on average."""
    coarse = torch.rand(count, 3, 5, 5, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(coarse, size=side, mode="bicubic").mul(0.5).add(0.2).clamp(0, 1)


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.family)
def test_a_cue_keeps_shapes_and_leaves_its_arguments_alone(cue):
    images, donors = smooth(seed=1), smooth(seed=2)
    before, given = images.clone(), donors.clone()
    swapped, without = cue.swap(images, donors), cue.remove(images)
    assert swapped.shape == without.shape == images.shape
    assert cue.outline(images).shape == (4, 32, 32) and cue.outline(images).dtype == torch.bool
    assert len(cue.measure(images)) == 4
    assert torch.equal(images, before) and torch.equal(donors, given)
    assert float(swapped.min()) >= 0 and float(swapped.max()) <= 1


@pytest.mark.parametrize("cue", [CUES[0], Colour(), Tone(), Tone(channels=True)], ids=lambda cue: cue.family)
def test_a_swapped_image_measures_like_its_donor(cue):
    images, donors = smooth(seed=1), smooth(seed=2)
    assert torch.allclose(cue.measure(cue.swap(images, donors)), cue.measure(donors), atol=0.02)


def test_a_strong_tint_is_exchanged_whole():
    # red keeps 10 % of the green channel, green 70 %: its deviation grows 7-fold, and red's falls to 0.16 / 0.9 = 0.18
    red, green = (torch.tensor(tint).reshape(1, 3, 1, 1) for tint in ((0.9, 0.1, 0.16), (0.16, 0.7, 0.24)))
    images, donors = smooth(seed=1) * red, smooth(seed=2) * green
    tone = Tone(channels=True)
    assert torch.allclose(tone.measure(tone.swap(images, donors)), tone.measure(donors), atol=0.01)
    assert torch.allclose(tone.measure(tone.swap(donors, images)), tone.measure(images), atol=0.01)


def test_cells_take_the_donors_pixels_inside_and_keep_the_images_outside():
    images, donors = torch.zeros(1, 3, 8, 8), torch.ones(1, 3, 8, 8)
    swapped = Cells(4, 4, ((0, 1),)).swap(images, donors)
    assert float(swapped[0, 0, :2, 2:4].min()) == 1 and float(swapped.sum()) == 3 * 4  # 2 x 2 pixels of 3 channels


def test_a_cell_outside_the_grid_is_refused():
    with pytest.raises(UnspurError, match="outside a grid of 4x4"):
        Cells(4, 4, ((4, 0),))


def test_noise_is_added_up_to_the_donors_level_and_smoothed_down_to_it():
    calm = smooth()
    loud = (calm + 0.05 * torch.randn(calm.shape, generator=torch.Generator().manual_seed(3))).clamp(0, 1)
    level = Noise().measure
    assert level(loud).mean() > 0.03  # 0.05 was added
    assert torch.allclose(level(Noise().swap(calm, loud)), level(loud), atol=0.02)
    assert level(Noise().swap(loud, calm)).mean() < 0.6 * level(loud).mean()


def test_a_sharp_image_takes_a_blurred_donors_spectrum():
    sharp = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    blurred = torch.nn.functional.avg_pool2d(sharp, 3, stride=1, padding=1)
    top = slice(8, 12)
    before, after = Sharpness().measure(sharp)[:, top], Sharpness().measure(Sharpness().swap(sharp, blurred))[:, top]
    wanted = Sharpness().measure(blurred)[:, top]
    assert (after - wanted).abs().mean() < 0.3 * (before - wanted).abs().mean()


def test_an_image_takes_a_compressed_donors_blocks():
    plain = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1)).mul(0.2).add(smooth(2, 64))
    donor = compressed(plain.flip(3).clamp(0, 1), 15)
    shown = Compression().measure
    assert shown(Compression().swap(plain.clamp(0, 1), donor)).mean() > shown(plain).mean() + 0.1


def test_a_region_is_pasted_where_the_donor_has_it_and_the_images_own_is_filled():
    image, donor = torch.full((1, 3, 16, 16), 0.2), torch.full((1, 3, 16, 16), 0.4)
    image[:, :, 2:4, 2:4] = 1
    donor[:, :, 10:12, 10:12] = 1
    swapped = Region(bright).swap(image, donor)
    assert torch.equal(bright(swapped), bright(donor))
    assert torch.allclose(swapped[:, :, 2:4, 2:4], torch.tensor(0.2))


def test_a_pixel_is_filled_with_the_mean_of_the_pixels_around_it_that_are_known():
    image = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(2)) * 0.4
    image[:, :, 6:8, 6:9] = 1
    window = image[:, :, 4:9, 4:9]  # two pixels around (6, 6), of which 2 x 3 are the region's
    known = window.masked_fill(window == 1, 0).sum((2, 3)) / (25 - 6)
    assert torch.allclose(Region(bright).remove(image)[:, :, 6, 6], known, atol=1e-5)


def test_an_image_that_is_all_region_becomes_black():
    assert not Region(bright).remove(torch.ones(1, 3, 16, 16)).any()
