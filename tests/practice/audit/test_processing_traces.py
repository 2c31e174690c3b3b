import io

import numpy as np
import pytest
import torch
from PIL import Image

from practice.audit.pictures import scene
from unspur.practice.audit.leak_scores import leak_scores
from unspur.practice.audit.processing_traces import compression, decoded, noise


def jpeg(pixels, quality, subsampling=2):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality, subsampling=subsampling)
    return np.asarray(Image.open(io.BytesIO(buffer.getvalue())).convert("RGB"))


def images(pixels):
    return torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).float() / 255


@pytest.fixture(scope="module")
def scenes():
    draw = np.random.default_rng(0)
    return [jpeg(scene(draw), 95) for _ in range(120)]


@pytest.mark.parametrize("quality", [95, 60])
def test_every_colour_of_a_decoded_jpeg_is_one_that_a_jpeg_can_hold(scenes, quality):
    share = decoded(images([jpeg(pixels, quality) for pixels in scenes[:20]]))[:, 0]
    assert float(share.min()) > 0.99


def test_of_changed_pixels_about_a_quarter_are_such_colours(scenes):
    mixed = [(0.86 * pixels + 0.14 * pixels[..., ::-1]).round().astype(np.uint8) for pixels in scenes[:20]]
    assert 0.15 < float(decoded(images(mixed))[:, 0].mean()) < 0.5


def told(measure, one, other):
    """How far a discriminant on a measure separates images: (accuracy, separation)."""
    features, y = measure(images([*one, *other])), torch.tensor([0] * len(one) + [1] * len(other))
    scores = leak_scores(features.unsqueeze(0), y, 2, permutations=1)
    return float(scores.balanced[0]), float(scores.separation[0])


def test_a_second_compression_is_told_by_the_steps_of_its_coefficients(scenes):
    accuracy, separation = told(compression, scenes[:60], [jpeg(pixels, 40) for pixels in scenes[60:]])
    assert accuracy > 0.9 and separation > 2.2


def test_four_specks_in_a_thousand_pixels_are_told_and_nothing_else_is(scenes):
    draw, specked = np.random.default_rng(1), []
    for pixels in scenes[60:]:
        changed = pixels.copy()
        for row, column in draw.integers(1, 31, (4, 2)):
            changed[row, column] = 255 if pixels[row, column].mean() < 128 else 0
        specked.append(changed)
    assert told(noise, scenes[:60], specked)[0] > 0.9
    assert told(noise, scenes[:60], scenes[60:])[0] < 0.7
