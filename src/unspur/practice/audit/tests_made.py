"""What an audit of the data tested and with which power, and further notes on the images."""

from __future__ import annotations

from unspur.parts.cues.cells import GRID
from unspur.parts.cues.standing_out import DIRECTIONS
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.file_facts import duplicates_across
from unspur.practice.audit.findings import Tested
from unspur.practice.audit.power import detectable
from unspur.practice.audit.rules import RARE_SHARE

PLACES = GRID * GRID * 5 // 4 + 4  # cells of two grids, and the border's strips


def tests_made(data: Collected, files: int, best_pattern: float, local: bool) -> tuple[Tested, ...]:
    """Every group of checks, ``files`` of them of file properties; ``local``: marks that move were looked for."""
    whole = len(data.scene) + len(data.traces)
    least = detectable(data.y, files + whole + PLACES)
    power = f"a test of {len(data.y):,} images finds what tells labels with {least:.2f} or more"
    groups = [("files", files), ("the whole image", whole), ("places", PLACES)]
    rare = f"a mark of unusual colour or brightness in {RARE_SHARE:.0%} or more of a class's images"
    return (
        *(Tested(what, count, None, power) for what, count in groups if count),
        Tested("fixed patterns", GRID * GRID, round(best_pattern, 4), power),
        Tested("marks that few images have", len(DIRECTIONS) * len(data.classes), None, rare),
        Tested("marks that move", int(local), None, power if local else None),
    )


def notes_on(data: Collected, *, drawn: bool) -> tuple[str, ...]:
    """Files that cannot be read, a sample, duplicates across classes, drawings."""
    notes = []
    if data.unread:
        name, problem = next(iter(data.unread.items()))
        notes.append(f"Left out for not being readable: {len(data.unread):,}, such as {name}, which {problem}.")
    if len(data.y) + len(data.unread) < data.total:
        notes.append(f"Looked at {len(data.y):,} of {data.total:,} images, each class in its share.")
    pairs = duplicates_across(data.facts, data.y) if data.facts else []
    if pairs:
        one, other = pairs[0]
        notes.append(f"Same file, other class: {len(pairs):,}, such as {data.names[one]} and {data.names[other]}.")
    if drawn:
        notes.append("Most neighbouring pixels are equal, as in drawings: processing traces were not graded.")
    return tuple(notes)
