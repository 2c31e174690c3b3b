import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from data.photos import noise
from unspur.data.images.decode import Unreadable, decode, suffixes


def encoded(image: Image.Image, kind="PNG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def corner(pixels, row=0, column=0):
    return pixels[:, row, column].tolist()


def test_an_image_of_the_wanted_size_comes_back_as_it_is():
    image = noise(16, 16)
    assert (decode(encoded(Image.fromarray(image)), 16) == image.transpose(2, 0, 1)).all()


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("1", 1, [255, 255, 255]),
        ("L", 77, [77, 77, 77]),
        ("P", 3, [9, 80, 200]),
        ("RGB", (9, 80, 200), [9, 80, 200]),
        ("RGBA", (9, 80, 200, 255), [9, 80, 200]),
        ("RGBA", (9, 80, 200, 0), [255, 255, 255]),  # what hides below transparent pixels stays hidden
        ("LA", (77, 255), [77, 77, 77]),
        ("LA", (77, 0), [255, 255, 255]),
    ],
)
def test_a_png_of_any_mode_becomes_rgb(mode, colour, expected):
    image = Image.new(mode, (5, 7), 0)
    if mode == "P":
        image.putpalette([0, 0, 0] * 3 + [9, 80, 200])
    image.paste(colour, (0, 0, 5, 7))
    pixels = decode(encoded(image), 4)
    assert pixels.shape == (3, 4, 4) and pixels.dtype == np.uint8
    assert corner(pixels, 2, 2) == expected


def test_of_sixteen_bits_the_upper_eight_are_kept():
    image = Image.fromarray(np.full((4, 4), 0xA7F0, np.uint16))  # clipping would give 255
    for kind in ("PNG", "TIFF"):
        assert corner(decode(encoded(image, kind), 4)) == [0xA7, 0xA7, 0xA7]


def test_a_palette_with_a_transparent_entry_is_white_there():
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 9, 80, 200])
    assert corner(decode(encoded(image, transparency=1), 4)) == [255, 255, 255]
    assert corner(decode(encoded(image, "GIF", transparency=0), 4)) == [9, 80, 200]


def test_cmyk_and_float_and_32_bit_images_are_read():
    ink = Image.new("CMYK", (4, 4), (255, 0, 0, 0))  # cyan ink takes the red away
    red, green, blue = corner(decode(encoded(ink, "JPEG", quality=95), 4))
    assert red < 10 and green > 245 and blue > 245
    assert corner(decode(encoded(Image.new("F", (4, 4), 0.5), "TIFF"), 4)) == [128, 128, 128]
    assert corner(decode(encoded(Image.new("I", (4, 4), 0xA7F0), "TIFF"), 4)) == [0xA7] * 3


@pytest.mark.parametrize(("mode", "value"), [("I", 70_000), ("F", 3.5)])
def test_values_without_a_known_range_are_refused_with_their_range(mode, value):
    with pytest.raises(Unreadable, match=rf"values from {value} to {value}; save it with 8 or 16 bits"):
        decode(encoded(Image.new(mode, (4, 4), value), "TIFF"), 4)


def test_an_image_is_turned_as_its_camera_says():
    image = Image.new("RGB", (8, 8), "black")
    image.paste((255, 255, 255), (0, 0, 8, 4))  # the upper half is white
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 90 degrees clockwise to view, so that top becomes right
    pixels = decode(encoded(image, "JPEG", exif=exif, quality=95), 8)
    assert pixels[:, :, 6].min() > 240 and pixels[:, :, 1].max() < 15


def test_a_broken_camera_note_turns_nothing_and_warns_of_nothing():
    content = encoded(Image.new("RGB", (8, 8), "white"), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff garbage")
    assert decode(content, 8).min() > 250


def test_each_way_to_fit_shows_what_it_promises():
    wide = Image.new("RGB", (30, 10), (255, 0, 0))
    wide.paste((0, 0, 255), (10, 0, 20, 10))  # red, blue, red
    content = encoded(wide)
    stretch, crop, pad = (decode(content, 30, fit) for fit in ("stretch", "crop", "pad"))
    assert corner(stretch, 15, 2) == [255, 0, 0] and corner(stretch, 0, 15) == [0, 0, 255]
    assert (crop[2, :, 1:-1] == 255).all()  # the middle square is all blue
    assert corner(pad, 0, 15) == [0, 0, 0] and corner(pad, 15, 15) == [0, 0, 255] and corner(pad, 15, 2) == [255, 0, 0]


def test_a_large_jpeg_unpacked_small_looks_like_the_whole_made_small():
    image = Image.fromarray(noise(512, 640, cell=64))
    content = encoded(image, "JPEG", quality=95)
    with Image.open(io.BytesIO(content)) as whole:
        exact = np.asarray(whole.resize((32, 32), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.abs(decode(content, 32).astype(int) - exact).max() <= 4


def test_of_an_animation_the_first_picture_is_taken():
    first, second = Image.new("RGB", (4, 4), (200, 0, 0)), Image.new("RGB", (4, 4), (0, 200, 0))
    content = encoded(first, "GIF", save_all=True, append_images=[second])
    assert corner(decode(content, 4)) == [200, 0, 0]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"])
def test_a_truncated_file_is_refused(kind):
    content = encoded(Image.fromarray(noise(64, 64)), kind)
    with pytest.raises(Unreadable, match=r"is truncated|cannot be decoded|is not an image"):
        decode(content[: len(content) // 2], 16)


def test_a_half_written_photograph_is_called_truncated():
    content = encoded(Image.fromarray(noise(64, 64)), "JPEG")
    with pytest.raises(Unreadable, match=r"^is truncated$"):
        decode(content[:-200], 64)


@pytest.mark.parametrize("content", [b"<html>not found</html>", b"\0" * 100, b"%!PS-Adobe-3.0 EPSF-3.0\nquit\n"])
def test_what_is_no_image_is_refused_and_no_program_is_run(content):
    with pytest.raises(Unreadable, match=r"^is not an image that can be read$"):
        decode(content, 16)


def test_an_empty_file_is_called_empty():
    with pytest.raises(Unreadable, match=r"^is empty"):
        decode(b"", 16)


def test_a_decompression_bomb_is_refused_before_it_unpacks():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)  # 3.6 billion pixels
    bomb = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )
    with pytest.raises(Unreadable, match="more than 178 million pixels"):
        decode(bomb, 16)


def test_the_usual_endings_are_images_and_programs_are_not():
    assert {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"} <= suffixes()
    assert not {".eps", ".ps", ".pdf", ".txt", ".csv", ".mpg"} & suffixes()
