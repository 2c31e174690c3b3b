"""How well each cell of the images gives the label away, over the mean image of each class."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.audit_context import AuditContext
from unspur.report.pictures import LEVELS, enlarged, picture, shades
from unspur.report.section import Section


@dataclass(frozen=True)
class Cell:
    """One cell of the map: its place, its shade, and its accuracy in words."""

    row: int
    column: int
    colour: str
    opacity: float
    title: str


@dataclass(frozen=True)
class Mean:
    label: str
    images: int
    uri: str


@dataclass(frozen=True)
class LeakMapView:
    """The map and what it lies over."""

    rows: int
    columns: int
    cells: tuple[Cell, ...]
    means: tuple[Mean, ...]
    chance: float
    best: float
    middle: float


def view(audit: AuditContext) -> LeakMapView:
    values, table = audit.leak_map, shades()
    rows, columns = values.shape
    cells = []
    for row in range(rows):
        for column in range(columns):
            value = float(values[row, column])
            level = round((LEVELS - 1) * min(1.0, max(0.0, (value - audit.chance) / (1 - audit.chance))))
            red, green, blue, opacity = (int(part) for part in table[level])
            title = f"row {row + 1}, column {column + 1}: {value:.2f}"
            cells.append(Cell(row, column, f"#{red:02x}{green:02x}{blue:02x}", opacity / 255, title))
    means = tuple(Mean(each.label, each.images, picture(enlarged(each.mean))) for each in audit.means)
    return LeakMapView(rows, columns, tuple(cells), means, audit.chance, float(values.max()), float(values.median()))


AUDIT_LEAK_MAP = Section("audit_leak_map", view)
