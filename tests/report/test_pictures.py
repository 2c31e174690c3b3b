import base64
import io

import numpy as np
import torch
from PIL import Image

from unspur.report.pictures import drawable, heat, picture, scale, shades


def decoded(uri: str, mode: str) -> np.ndarray:
    kind, _, text = uri.partition(",")
    assert kind == "data:image/webp;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert(mode)).astype(int)


def test_a_picture_keeps_every_pixel():
    image = torch.randint(0, 256, (3, 28, 56), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    assert (decoded(picture(image), "RGB") == image.permute(1, 2, 0).numpy()).all()


def test_a_grey_picture_stays_grey():
    image = torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16)
    assert (decoded(picture(image), "RGB") == image[0].numpy()[:, :, None]).all()


def test_a_large_picture_is_shrunk_in_its_own_shape():
    # 512 x 256: the longer side becomes 128, the other half as long.
    assert decoded(picture(torch.zeros(3, 256, 512, dtype=torch.uint8)), "RGB").shape == (64, 128, 3)


def test_only_grey_and_colour_images_are_drawn():
    shapes = [(1, 4, 4), (3, 4, 4), (2, 4, 4), (4, 4, 4), (20,)]
    assert [drawable(torch.Size(shape)) for shape in shapes] == [True, True, False, False, False]


def test_the_hottest_place_is_where_the_map_is_largest_whatever_its_scale():
    values = torch.zeros(7, 7)
    values[1, 5] = 1e-4
    drawn = decoded(heat(values), "RGBA")
    # 7 cells over 56 pixels: cell (1, 5) is centred between pixels 11 and 12 down, 43 and 44 across.
    assert drawn.shape == (56, 56, 4)
    assert abs(drawn[12, 44] - shades()[-1].astype(int)).max() <= 20
    assert drawn[40, 10, 3] == 0


def test_a_coarse_map_is_enlarged_smoothly():
    values = torch.tensor([[0.0, 1.0]]).repeat(2, 1)
    opacity = decoded(heat(values), "RGBA")[28, :, 3]
    assert (np.diff(opacity) >= 0).all() and len(np.unique(opacity)) > 10


def test_a_map_as_fine_as_the_image_is_not_smoothed():
    values = torch.zeros(64, 64)
    values[10, 20] = 1.0
    assert (decoded(heat(values), "RGBA")[:, :, 3] > 0).sum() == 1


def test_negative_evidence_is_no_evidence():
    values = torch.full((56, 56), -3.0)
    assert decoded(heat(values), "RGBA")[:, :, 3].max() == 0
    values[0, 0] = 1.0
    drawn = decoded(heat(values), "RGBA")
    assert drawn[0, 0, 3] > 200 and drawn[30, 30, 3] == 0


def test_the_shades_grow_lighter_and_more_opaque_all_the_way():
    red, green, blue, opacity = shades().astype(float).T
    # Relative luminance; equal steps of it would not look equal, but its order is the order that grey print keeps.
    luminance = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    assert (np.diff(luminance) > 0).all()
    assert (np.diff(opacity) >= 0).all() and opacity[0] == 0


def test_the_scale_shows_every_shade_in_order():
    assert (decoded(scale(), "RGBA")[0, 1:] == shades()[1:]).all()
