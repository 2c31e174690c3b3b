"""Cells of a map: which reach a level, whether they lie at the edge, and how to say where they are."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from unspur.parts.cues.cells import GRID


def cells_above(scores: Tensor, level: float) -> tuple[tuple[int, int], ...]:
    """Cells that reach ``level``, or the best one."""
    cells = (scores >= level).nonzero().tolist() or [list(divmod(int(scores.argmax()), scores.shape[1]))]
    return tuple((int(row), int(column)) for row, column in cells)


def at_edge(best: tuple[int, int], cells: Sequence[tuple[int, int]]) -> bool:
    """Whether the cells lie at the edge: most of them, or half of them including the best one.

    A square in a corner may reach one cell inside.

    >>> at_edge((1, 1), [(0, 0), (0, 1), (1, 0), (1, 1)]), at_edge((1, 1), [(0, 1), (1, 1)])
    (True, False)
    """
    outer = [cell for cell in cells if 0 in cell or GRID - 1 in cell]
    return 2 * len(outer) > len(cells) or (best in outer and 2 * len(outer) == len(cells))


def cells_in_words(cells: Sequence[tuple[int, int]]) -> str:
    """How many cells, and where they lie together.

    >>> cells_in_words([(0, 0)]), cells_in_words([(0, 0), (7, 7)])
    ('one cell at the top left', '2 of 64 cells')
    """
    if len(cells) == 1:
        return f"one cell{_side_of(cells)}"
    return "every cell" if len(cells) == GRID * GRID else f"{len(cells)} of {GRID * GRID} cells{_side_of(cells)}"


def _side_of(cells: Sequence[tuple[int, int]]) -> str:
    """Where cells lie together, in words.

    >>> _side_of([(0, 0), (1, 0)]), _side_of([(7, 2), (7, 5)]), _side_of([(0, 0), (7, 7)])
    (' at the top left', ' at the bottom', '')
    """
    near = GRID // 2
    found = []
    for axis, names in ((0, ("top", "bottom")), (1, ("left", "right"))):
        places = [cell[axis] for cell in cells]
        found += [names[0]] if max(places) < near else [names[1]] if min(places) >= near else []
    return f" at the {' '.join(found)}" if found else ""
