"""A picture of a data set's training samples: a row for each class and group."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from unspur.core.files import replacing
from unspur.data.base import Dataset, aligned_with, groups_of
from unspur.data.lettering import lettering, wrapped
from unspur.errors import UnspurError

MOST_ROWS = 24  # with more groups than this, a class gets two rows: with and against the training correlation
GAP, MARGIN, LINE = 6, 16, 19
LARGE, SMALL = 17, 14  # letters
INK, FAINT, PAPER, FRAME = (25, 25, 30), (110, 110, 120), (255, 255, 255), (190, 190, 200)


class Row(NamedTuple):
    title: str
    members: Tensor  # sample numbers


def preview(dataset: Dataset, per_group: int = 8, seed: int = 0) -> Image.Image:
    """A labelled grid of training samples, ``per_group`` of each group, drawn with ``seed``."""
    split = dataset.train
    generator = torch.Generator().manual_seed(seed)
    rows = _rows(dataset)
    drawn = _draw_rows([split.batch(_choose(row.members, per_group, generator)).x for row in rows], per_group)
    titles = [lettering(row.title, LARGE) for row in rows]
    counts = [lettering(_count(len(row.members), len(split)), SMALL) for row in rows]
    heading = lettering(f"{dataset.name}: {len(split):,} training samples", LARGE)
    left = MARGIN + math.ceil(max(text.width for text in (*titles, *counts))) + MARGIN
    width = max(left + max(picture.width for picture in drawn), math.ceil(heading.width) + MARGIN) + MARGIN
    notes = wrapped(dataset.note, SMALL, width - 2 * MARGIN)
    heights = [max(picture.height, 44) for picture in drawn]
    top = MARGIN + 36 + LINE * len(notes)
    sheet = Image.new("RGB", (width, top + sum(heights) + GAP * (len(rows) - 1) + MARGIN), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((MARGIN, MARGIN), heading.text, fill=INK, font=heading.font)
    for number, note in enumerate(notes):
        pen.text((MARGIN, MARGIN + 26 + LINE * number), note.text, fill=FAINT, font=note.font)
    for title, count, picture, height in zip(titles, counts, drawn, heights, strict=True):
        middle = top + height // 2
        pen.text((MARGIN, middle - 2), title.text, fill=INK, font=title.font, anchor="ls")
        pen.text((MARGIN, middle + 16), count.text, fill=FAINT, font=count.font, anchor="ls")
        sheet.paste(picture, (left, top + (height - picture.height) // 2))
        top += height + GAP
    return sheet


def write_preview(dataset: Dataset, path: Path) -> None:
    """Write the picture to ``path``, in the format that its ending names."""
    picture = preview(dataset)
    if path.suffix.lower() not in Image.registered_extensions():
        raise UnspurError(f"A picture's name ends with .png or another format's ending, but got '{path.name}'.")
    try:
        with replacing(path) as temporary:
            picture.save(temporary)
    except OSError as error:
        raise UnspurError(f"{path} cannot be written ({error.strerror or error}).") from None


def _rows(dataset: Dataset) -> list[Row]:
    split = dataset.train
    groups = groups_of(split)
    if len(groups.keys) <= MOST_ROWS:
        return [
            Row(_title(dataset, key), (groups.id == number).nonzero().squeeze(1))
            for number, key in enumerate(groups.keys)
        ]
    aligned = aligned_with(split, split)
    sides = {"": torch.ones(len(split), dtype=torch.bool)}
    if aligned is not None:
        sides = {", aligned": aligned, ", conflicting": ~aligned}
    rows = [
        Row(name + side, ((split.y == label) & member).nonzero().squeeze(1))
        for label, name in enumerate(dataset.classes)
        for side, member in sides.items()
    ]
    return [row for row in rows if len(row.members)]


def _title(dataset: Dataset, key: tuple[int, ...]) -> str:
    values = zip(dataset.train.attributes, key[1:], strict=True)
    return ", ".join(
        [dataset.classes[key[0]], *(f"{name}: {dataset.attribute_values[name][value]}" for name, value in values)]
    )


def _count(part: int, whole: int) -> str:
    """A number of samples with its percentage, which is never rounded to nothing.

    >>> _count(1, 8), _count(2, 100_000)
    ('1 sample, 12.5 %', '2 samples, < 0.1 %')
    """
    share = 100 * part / whole
    percentage = "< 0.1 %" if share < 0.1 else f"{share:.1f} %"
    return f"{part:,} sample{'' if part == 1 else 's'}, {percentage}"


def _choose(members: Tensor, count: int, generator: torch.Generator) -> Tensor:
    return members[torch.randperm(len(members), generator=generator)[:count].sort().values]


def _draw_rows(samples: list[Tensor], count: int) -> list[Image.Image]:
    if samples[0].dim() > 2:
        return [_draw_images(x, count) for x in samples]
    values = torch.cat(samples)
    low, high = values.min(), values.max()
    return [_draw_vectors((x - low) / (high - low).clamp(min=1e-12)) for x in samples]


def _draw_images(x: Tensor, count: int) -> Image.Image:
    pictures = [_draw_image(image) for image in x]
    width, height = pictures[0].size
    row = Image.new("RGB", (count * (width + GAP) - GAP, height), PAPER)
    for place, picture in enumerate(pictures):
        row.paste(picture, (place * (width + GAP), 0))
    return row


def _draw_image(image: Tensor) -> Image.Image:
    """One image in a thin frame; small images are enlarged by a whole factor, large ones shrunk."""
    pixels = image.expand(3, -1, -1) if image.shape[0] == 1 else image
    picture = Image.fromarray((pixels * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy())
    height = picture.height
    factor = max(1, 64 // height) if height <= 128 else 128 / height
    size = (round(picture.width * factor), round(height * factor))
    picture = picture.resize(size, Image.Resampling.NEAREST if factor >= 1 else Image.Resampling.LANCZOS)
    framed = Image.new("RGB", (size[0] + 2, size[1] + 2), FRAME)
    framed.paste(picture, (1, 1))
    return framed


def _draw_vectors(x: Tensor) -> Image.Image:
    """Each vector as a line of cells, dark for 0 and bright for 1."""
    cells = (x * 200 + 40).round().to(torch.uint8)
    cell = max(4, min(18, 900 // x.shape[1]))
    picture = Image.fromarray(cells.numpy()).resize((x.shape[1] * cell, len(x) * cell), Image.Resampling.NEAREST)
    pen = ImageDraw.Draw(picture)
    for column in range(x.shape[1] + 1):
        pen.line([(column * cell - 1, 0), (column * cell - 1, picture.height)], fill=255)
    for line in range(len(x) + 1):
        pen.line([(0, line * cell - 1), (picture.width, line * cell - 1)], fill=255)
    return picture.convert("RGB")
