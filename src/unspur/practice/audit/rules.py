"""The rules by which a leak is graded, with the figures that they were set on (docs/audit.md).

Natural classes differ in colour, texture and background, so by accuracy alone every data set would be guilty. These
rules ask for what natural pairs of classes did not show: benchmarks/audit.py measures both sides.
"""

from __future__ import annotations

from unspur.practice.audit.findings import Grade

SIGNIFICANT = 0.05

PATTERN_TELLS, PATTERN_APART = 0.68, 0.9  # fine detail at fixed pixels: natural pairs reach 0.64 and 0.52
CELL_NATURAL = 1.0  # deviations above the upper quartile that no cell of natural pairs reaches
CELL_TELLS, CELL_APART = (
    0.15,
    2.0,
)  # a cell above the upper quartile of cells, in accuracy and separation: natural pairs reach 0.10 and 0.94
TRACE_APART, TRACE_RATIO = (
    2.2,
    1.5,
)  # separation by a trace of processing, and its ratio to that by colour and places: pairs reach 2.46 and 1.9
TRACE_SURE = 3.5  # enough by itself
MOVING_TELLS, MOVING_APART = 0.85, 4.5  # the local detector: natural pairs reach 0.90 and 3.5
FILE_TELLS = 0.6  # a property that no scene explains
NUMBER_TELLS = 0.8  # a name's number, a year, or the shape of images, which may go with a class for harmless reasons
BYTES_APART = 2.5  # the size of files, which depends on what they show

CONTEXT_TELLS = 0.65  # colour, brightness or contrast of the whole image, or the middle of its edge cells
BACKGROUND = 0.15  # edge cells above middle cells: natural pairs have 0.11, animals pasted on other scenes 0.22

# A mark that few images have: the share of its class, and how far the median marked image lies from the class's
# median, in robust deviations: natural pairs reach 6.3, the patches of skin lesions 13.
RARE_SHARE, RARE_APART = 0.03, 9.0

DRAWN = 0.4  # with this share of equal neighbours images count as drawings, whose strokes are at fixed pixels, too


def grade_pattern(balanced: float, separation: float, *, at_edge: bool, drawn: bool) -> Grade:
    """A mark at fixed pixels. In drawings and digits the object itself is one, unless it lies at the edge."""
    if balanced < PATTERN_TELLS or separation < PATTERN_APART:
        return "informative"
    return "leaks" if at_edge or not drawn else "informative"


def grade_cell(above_balanced: float, above_separation: float, *, at_edge: bool, drawn: bool) -> Grade:
    """A cell that tells much more than most others."""
    if above_balanced < CELL_TELLS or above_separation < CELL_APART:
        return "informative"
    return "leaks" if at_edge or not drawn else "informative"


def grade_trace(separation: float, content: float, *, drawn: bool) -> Grade:
    """A trace of processing, compared with how well content separates: colour, brightness, median cell, background."""
    if drawn:
        return "informative"
    stands_out = separation >= TRACE_APART and separation >= TRACE_RATIO * content
    return "leaks" if stands_out or separation >= TRACE_SURE else "informative"


def grade_rare(apart: float, *, drawn: bool) -> Grade:
    """A mark in few images of one class."""
    return "leaks" if not drawn and apart >= RARE_APART else "informative"


def grade_moving(balanced: float, separation: float, content: float, *, drawn: bool) -> Grade:
    """A small mark anywhere."""
    if drawn or balanced < MOVING_TELLS or separation < MOVING_APART:
        return "informative"
    return "leaks" if separation >= TRACE_RATIO * content else "informative"


def grade_file(name: str, balanced: float, separation: float, content: float) -> Grade:
    """A property of files."""
    if name in ("bytes", "bytes per pixel"):
        grave = separation >= BYTES_APART and separation >= TRACE_RATIO * content
    elif name in ("number in the name", "year", "dimensions", "aspect ratio"):
        grave = balanced >= NUMBER_TELLS
    else:
        grave = balanced >= FILE_TELLS
    return "leaks" if grave else "informative"


def grade_scene(balanced: float) -> Grade:
    """Colour, brightness or contrast of the whole."""
    return "context" if balanced >= CONTEXT_TELLS else "informative"
