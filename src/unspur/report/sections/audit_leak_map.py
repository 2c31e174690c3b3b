"""How well each cell of the images gives the label away, over the mean image of each class."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

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


def cells_of(values: Tensor, low: float, high: float) -> tuple[Cell, ...]:
    """The cells of a map, shaded from no shade at ``low`` to the strongest at ``high``."""
    table, cells = shades(), []
    for row, numbers in enumerate(values.tolist()):
        for column, value in enumerate(numbers):
            level = round((LEVELS - 1) * min(1.0, max(0.0, (value - low) / max(high - low, 1e-9))))
            red, green, blue, opacity = (int(part) for part in table[level])
            title = f"row {row + 1}, column {column + 1}: {value:.2f}"
            cells.append(Cell(row, column, f"#{red:02x}{green:02x}{blue:02x}", opacity / 255, title))
    return tuple(cells)


def view(audit: AuditContext) -> LeakMapView:
    values = audit.leak_map
    rows, columns = values.shape
    cells = cells_of(values, audit.chance, 1.0)
    means = tuple(Mean(each.label, each.images, picture(enlarged(each.mean))) for each in audit.means)
    return LeakMapView(rows, columns, cells, means, audit.chance, float(values.max()), float(values.median()))


AUDIT_LEAK_MAP = Section("audit_leak_map", view)
