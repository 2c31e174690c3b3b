from dataclasses import replace

import pytest
import torch
from PIL import Image

from unspur.data.base import Dataset, Split
from unspur.data.catalog import load
from unspur.data.preview import MOST_ROWS, _draw_rows, _rows, preview, write_preview
from unspur.errors import UnspurError


def dataset(x: torch.Tensor, y: list[int], a: list[int], values: int = 2) -> Dataset:
    split = Split(x, torch.tensor(y), {"a": torch.tensor(a)})
    names = tuple(f"v{value}" for value in range(values))
    return Dataset("tiny", split, split, {}, tuple(f"c{label}" for label in range(max(y) + 1)), {"a": names})


def coloured(picture: Image.Image, colour: tuple[int, int, int]) -> int:
    """How many pixels have exactly that colour."""
    return sum(count for count, found in picture.convert("RGB").getcolors(1 << 24) if found == colour)


def test_each_group_has_a_row_with_its_name_and_its_samples():
    x = torch.zeros(6, 3, 8, 8, dtype=torch.uint8)
    rows = _rows(dataset(x, [0, 0, 0, 1, 1, 0], [1, 1, 0, 0, 0, 1]))
    assert [(row.title, row.members.tolist()) for row in rows] == [
        ("c0, a: v0", [2]),
        ("c0, a: v1", [0, 1, 5]),
        ("c1, a: v0", [3, 4]),
    ]


def test_many_groups_become_two_rows_a_class():
    # 10 classes, each with its own value and once each with every other: 100 groups
    y = [label for label in range(10) for _ in range(20)]
    a = [label if turn >= 9 else (label + 1 + turn) % 10 for label in range(10) for turn in range(20)]
    rows = _rows(dataset(torch.zeros(200, 1, 4, 4, dtype=torch.uint8), y, a, 10))
    assert len(rows) == 20 <= MOST_ROWS
    assert [(row.title, len(row.members)) for row in rows[:2]] == [("c0, aligned", 11), ("c0, conflicting", 9)]


def test_samples_are_drawn_from_their_own_group_as_often_as_asked():
    # group 0 is red, group 1 green: 3 and 2 samples of 8x8, enlarged 8 times
    x = torch.zeros(30, 3, 8, 8, dtype=torch.uint8)
    x[:28, 0], x[28:, 1] = 255, 255
    picture = preview(dataset(x, [0] * 28 + [1] * 2, [0] * 28 + [1] * 2), per_group=3)
    assert coloured(picture, (255, 0, 0)) == 3 * 64 * 64
    assert coloured(picture, (0, 255, 0)) == 2 * 64 * 64  # there are no more


def test_another_seed_shows_other_samples():
    data = load("mnist", base="mini")
    first, again, other = (preview(data, seed=seed).tobytes() for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize("shape", [(1, 4, 4), (3, 28, 56), (3, 64, 32), (3, 400, 300)])
def test_images_of_any_size_give_a_readable_sheet(shape):
    x = torch.full((4, *shape), 200, dtype=torch.uint8)
    picture = preview(dataset(x, [0, 0, 1, 1], [0, 1, 0, 1]), per_group=2)
    # four rows of 44 to 130 pixels with 6 between them; 52 above, 16 below
    assert 4 * 44 + 86 <= picture.height <= 4 * 130 + 86 and picture.width < 900


def ink(picture: Image.Image, box: tuple[int, int, int, int]) -> int:
    return sum(count for count, found in picture.crop(box).getcolors(1 << 24) if found != (255, 255, 255))


def test_a_long_note_is_broken_into_lines_and_nothing_of_it_is_cut_off():
    x = torch.zeros(4, 3, 8, 8, dtype=torch.uint8)
    short = dataset(x, [0, 0, 1, 1], [0, 1, 0, 1])
    long = replace(short, note="The test set was drawn with seed 0 (20 of 100 images). " * 5)
    plain, noted = preview(short, per_group=2), preview(long, per_group=2)
    assert noted.width == plain.width and noted.height > plain.height + 4 * 19  # five sentences need as many lines
    extra = noted.height - plain.height
    assert ink(noted, (0, 42, noted.width, 42 + extra)) > 500  # they stand between the heading and the first row
    assert ink(noted, (noted.width - 15, 0, noted.width, noted.height)) == 0  # and end before the margin


def test_names_with_accents_are_drawn_and_not_as_boxes():
    x = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    names = [replace(dataset(x, [0, 1], [0, 0]), classes=classes) for classes in (("é", "ü"), ("日", "語"))]
    pictures = {preview(data, per_group=1).tobytes() for data in names}
    assert len(pictures) == 2  # were they boxes, they would be alike


def test_vectors_are_drawn_as_lines_of_cells():
    # cells of 18x18, less a border of one pixel on two sides; both rows share one scale
    first, second = _draw_rows([torch.tensor([[-1.0, 1, 1]]), torch.tensor([[1.0, 1, 1]])], 1)
    assert coloured(first, (40, 40, 40)) == 17 * 17 and coloured(first, (240, 240, 240)) == 2 * 17 * 17
    assert coloured(second, (240, 240, 240)) == 3 * 17 * 17
    assert preview(load("parity", train=20, val=0, test=1)).height > 4 * 44


def test_the_picture_is_written_in_the_format_of_its_name(tmp_path):
    data = load("parity", train=20, val=0, test=1)
    write_preview(data, tmp_path / "new" / "p.png")
    with Image.open(tmp_path / "new" / "p.png") as picture:
        assert picture.format == "PNG"
    with pytest.raises(UnspurError, match=r"ends with \.png or another format's ending, but got 'p\.txt'"):
        write_preview(data, tmp_path / "p.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(UnspurError, match=r"p\.png cannot be written"):
        write_preview(data, tmp_path / "file" / "p.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "new"]
