"""The same images before and after a repair: where both models look, and what they say once the cue is swapped."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.pictures import enlarged, heat, photo
from unspur.report.repair_context import PictureRow, RepairContext
from unspur.report.section import Section


@dataclass(frozen=True)
class PictureTile:
    """Pictures of one image."""

    image: str
    changed: str
    before: str
    after: str
    row: PictureRow


@dataclass(frozen=True)
class PicturesView:
    """All pictures, and what a map shows."""

    explained: str
    tiles: tuple[PictureTile, ...]


def view(context: RepairContext) -> PicturesView:
    made = [
        PictureTile(photo(enlarged(row.image)), photo(enlarged(row.changed)), heat(row.before), heat(row.after), row)
        for row in context.pictures
    ]
    return PicturesView(context.explained, tuple(made))


REPAIR_PICTURES = Section("repair_pictures", view)
