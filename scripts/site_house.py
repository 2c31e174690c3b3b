"""The house of ARCHITECTURE.md as a picture: a floor for each layer, a room for each package, from its own text."""

from __future__ import annotations

import re
from html import escape

FLOORS = re.compile(r"(?:^    [a-z][a-z ·]*\n){3,}", re.MULTILINE)
WIDTH, HEIGHT, GAP = 640, 40, 10  # pixels of a floor, and between two


def drawn(text: str) -> str:
    """``text`` with its list of layers as a picture; a room imports only from the floors above it."""
    found = FLOORS.search(text)
    if not found:
        raise ValueError("ARCHITECTURE.md has no list of layers to draw.")
    floors = [line.strip().split(" · ") for line in found[0].strip("\n").splitlines()]
    return text[: found.start()] + picture(floors) + "\n" + text[found.end() :]


def picture(floors: list[list[str]]) -> str:
    """The floors from top to bottom, an arrow between each two; in the colours of the page."""
    height = len(floors) * (HEIGHT + 2 * GAP)
    names = "; ".join(", ".join(floor) for floor in floors)
    shapes = []
    for number, floor in enumerate(floors):
        top, room = number * (HEIGHT + 2 * GAP), (WIDTH - GAP * (len(floor) - 1)) / len(floor)
        if number:
            shapes.append(f'<path d="M{WIDTH / 2} {top - 3}v{5 - 2 * GAP}m-4 5l4 -5l4 5" class="arrow"/>')
        for place, name in enumerate(floor):
            left = place * (room + GAP)
            shapes.append(f'<rect x="{left:.1f}" y="{top}" width="{room:.1f}" height="{HEIGHT}" rx="6"/>')
            shapes.append(f'<text x="{left + room / 2:.1f}" y="{top + HEIGHT / 2 + 5}">{escape(name)}</text>')
    head = f'<svg class="house" viewBox="-2 -2 {WIDTH + 4} {height}" role="img" aria-label="Layers: {escape(names)}">'
    return f'<div class="house">{head}{"".join(shapes)}</svg></div>\n'
