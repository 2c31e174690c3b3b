"""Each corruption against its published definition (hendrycks/robustness, ImageNet-C/create_c/make_cifar_c.py, severity
5), computed here image by image in float64 with scipy, OpenCV, Pillow and colorsys."""

import colorsys

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from data.photos import noise
from unspur.data.shortcuts.corruptions import CORRUPTIONS, corrupt, frost_texture
from unspur.errors import UnspurError

SPOTS = noise(32, 32).copy()
SPOTS[:4, :4] = 0  # black, white, grey and pure red: the corners of HSV
SPOTS[:4, 4:8] = 255
SPOTS[:4, 8:12] = 128
SPOTS[:4, 12:16] = (200, 0, 0)


def images(*pictures):
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous()


def corrupted(name, picture=SPOTS, seed=0):
    result = corrupt(images(picture), name, torch.Generator().manual_seed(seed))
    return result[0].permute(1, 2, 0).numpy()


def cut(picture):
    return np.clip(picture, 0, 255).astype(np.uint8)


def in_hsv(change):
    def pixel(rgb):
        h, s, v = change(*colorsys.rgb_to_hsv(*(rgb / 255)))
        return np.array(colorsys.hsv_to_rgb(h, s, v)) * 255

    return np.apply_along_axis(pixel, 2, SPOTS.astype(np.float64))


def assert_alike(result, published, *, off=0.01):
    """Equal bytes, but for a few that lie on the edge between two whole numbers."""
    difference = np.abs(result.astype(int) - published.astype(int))
    assert difference.max() <= 1 and (difference > 0).mean() <= off


def test_brightness_adds_to_the_value():
    assert_alike(corrupted("brightness"), cut(in_hsv(lambda h, s, v: (h, s, min(v + 0.3, 1)))))


def test_saturate_raises_the_saturation_and_turns_grey_reddish():
    assert_alike(corrupted("saturate"), cut(in_hsv(lambda h, s, v: (h, min(2.5 * s + 0.2, 1), v))))
    # Grey 128 has saturation 0 and hue 0: 0.2 of red, 128 (1 - 0.2) = 102.4, cut to 102.
    assert corrupted("saturate")[2, 9].tolist() == [128, 102, 102]


def test_contrast_draws_each_channel_towards_its_mean():
    mean = SPOTS.mean((0, 1))
    assert_alike(corrupted("contrast"), cut((SPOTS - mean) * 0.15 + mean))


def test_gaussian_blur_repeats_the_border():
    blurred = ndimage.gaussian_filter(SPOTS.astype(np.float64), (1, 1, 0), mode="nearest", truncate=4)
    assert_alike(corrupted("gaussian_blur"), cut(blurred))


def test_defocus_blur_is_the_mean_of_a_disk():
    # Of the cells around a pixel those at (+-1, +-1) lie sqrt(2) away, inside the radius 1.5; those at 2 are outside.
    published = cv2.filter2D(SPOTS.astype(np.float64), -1, np.full((3, 3), 1 / 9))
    # One mean of nine in nine is a whole number, which float64 may leave just below itself.
    assert_alike(corrupted("defocus_blur"), cut(published), off=1 / 9)


def test_pixelate_is_pillows_box_filter_down_to_20_and_up_again():
    small = Image.fromarray(SPOTS).resize((20, 20), Image.Resampling.BOX)  # int(32 * 0.65) = 20
    assert np.array_equal(corrupted("pixelate"), np.asarray(small.resize((32, 32), Image.Resampling.BOX)))


def test_elastic_transform_bends_and_then_shifts():
    generator = torch.Generator().manual_seed(0)
    before = np.float32([[26, 26], [26, 6], [6, 6]])  # 16 +- 32 // 3
    moved = 2 * torch.rand(1, 3, 2, generator=generator)[0].numpy() - 1
    affine = cv2.getAffineTransform(before, (before + 0.03 * 32 * moved).astype(np.float32))
    bent = cv2.warpAffine(SPOTS.astype(np.float32), affine, (32, 32), borderMode=cv2.BORDER_REFLECT_101)
    shift = 2 * torch.rand(1, 2, 32, 32, generator=generator)[0].double().numpy() - 1
    right, down = (3.2 * ndimage.gaussian_filter(part, 0.96, mode="reflect", truncate=3) for part in shift)
    row, column = np.mgrid[:32, :32]
    published = np.stack(
        [
            ndimage.map_coordinates(bent[..., c], [row + down, column + right], order=1, mode="reflect")
            for c in range(3)
        ],
        axis=-1,
    )
    # OpenCV rounds places to 1/32 of a pixel, so bytes differ a little more than elsewhere.
    difference = np.abs(corrupted("elastic_transform").astype(int) - cut(published).astype(int))
    assert np.median(difference) <= 1 and (difference > 8).mean() < 0.02


def test_noise_has_the_published_strength():
    grey = np.full((64, 64, 3), 128, np.uint8)
    change = corrupted("gaussian_noise", grey).astype(float) - 127.5  # bytes are cut off, half a level down
    assert abs(change.mean()) < 1 and abs(change.std() - 25.5) < 0.8
    speckled = corrupted("impulse_noise", grey)
    assert set(np.unique(speckled)) == {0, 128, 255}
    # 7 % of 64 * 64 * 3 = 12,288 values: 860, half of them black; three standard deviations are 85 and 61.
    assert abs((speckled != 128).sum() - 860) < 85 and abs((speckled == 0).sum() - 430) < 61
    # A value, not a pixel, is struck: some pixels have one channel of their own left.
    assert ((speckled == 128).any(-1) & (speckled != 128).any(-1)).any()


def test_frost_is_a_piece_of_the_texture_over_the_dimmed_image():
    black, white = (np.full((32, 32, 3), level, np.uint8) for level in (0, 255))
    piece = corrupted("frost", black) / 0.45
    generator = torch.Generator().manual_seed(0)
    texture = frost_texture(192).permute(1, 2, 0).numpy()
    top, left = (torch.rand(1, 2, generator=generator) * 161).long()[0].tolist()  # 192 - 32 + 1 places
    expected = texture[top : top + 32, left : left + 32]
    assert np.abs(piece - expected).max() <= 1 / 0.45 + 0.01
    assert_alike(corrupted("frost", white), cut(0.75 * 255 + 0.45 * expected))
    # Ice is neither flat nor white all over.
    assert texture.std() > 20 and 80 < texture.mean() < 200


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_equal_generators_give_equal_bytes_and_the_image_is_left_alone(name):
    x = images(SPOTS, SPOTS[::-1].copy())
    kept = x.clone()
    first, second = (corrupt(x, name, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second) and torch.equal(x, kept)
    assert first.dtype == torch.uint8 and first.shape == x.shape and not torch.equal(first, x)


def test_a_larger_image_is_corrupted_as_strongly():
    large = np.asarray(Image.fromarray(SPOTS).resize((96, 96), Image.Resampling.BILINEAR))
    for name in ("gaussian_blur", "defocus_blur"):
        small_again = np.asarray(Image.fromarray(corrupted(name, large)).resize((32, 32), Image.Resampling.BOX))
        change = np.abs(small_again.astype(float) - corrupted(name).astype(float)).mean()
        assert change < 0.35 * np.abs(corrupted(name).astype(float) - SPOTS).mean(), name
    assert corrupted("elastic_transform", large[:, :60]).shape == (96, 60, 3)
    assert corrupted("frost", large[:30, :44]).shape == (30, 44, 3)


def test_bad_input_is_one_sentence():
    with pytest.raises(UnspurError, match=r"Unknown corruption 'frst'\. Did you mean 'frost'\?"):
        corrupted("frst")
    with pytest.raises(UnspurError, match=r"needs RGB images as bytes .* but got \(1, 1, 8, 8\)"):
        corrupt(torch.zeros(1, 1, 8, 8, dtype=torch.uint8), "frost", torch.Generator())
    assert corrupt(torch.zeros(0, 3, 8, 8, dtype=torch.uint8), "contrast", torch.Generator()).shape == (0, 3, 8, 8)
