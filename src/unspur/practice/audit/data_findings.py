"""What gives labels away in the data: every test, graded by the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unspur.parts.cues.base import Cue
from unspur.parts.cues.cells import GRID, Cells
from unspur.parts.cues.region import Region
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.cue_families import SCENE_CUES, TRACE_CUES, TRACE_WORDS
from unspur.practice.audit.file_facts import properties
from unspur.practice.audit.findings import RARE, Finding, Grade, Kind, Tested
from unspur.practice.audit.fixed_pattern import PatternScores, pattern_scores
from unspur.practice.audit.image_statistics import coarser
from unspur.practice.audit.leak_scores import LeakScores, permutations_for, permuted_labels, separation_of
from unspur.practice.audit.leak_tests import LeakTests
from unspur.practice.audit.moving import Moving, find_moving
from unspur.practice.audit.one_cause import Look, one_cause
from unspur.practice.audit.places import at_edge, cells_above, cells_in_words
from unspur.practice.audit.power import interval, tail
from unspur.practice.audit.rare_marks import rare_mark
from unspur.practice.audit.rules import (
    BACKGROUND,
    CELL_NATURAL,
    CONTEXT_TELLS,
    DRAWN,
    PATTERN_TELLS,
    RARE_APART,
    RARE_SHARE,
    SIGNIFICANT,
    grade_cell,
    grade_file,
    grade_moving,
    grade_pattern,
    grade_rare,
    grade_scene,
    grade_trace,
)
from unspur.practice.audit.tests_made import notes_on, tests_made

BEHIND = "the background (cells at the edge)"
PATTERN_IMAGES = 3_000  # images in which fixed patterns are searched for


@dataclass(frozen=True, eq=False)
class DataFindings:
    """All tests of the data."""

    findings: tuple[Finding, ...]
    tested: tuple[Tested, ...]
    leak_map: Tensor
    pattern_map: Tensor
    content: float  # what the scene separates the classes by, in robust deviations
    notes: tuple[str, ...]


def data_findings(
    data: Collected, *, seed: int = 0, local: bool = True, progress: Callable[[float], None] = lambda done: None
) -> DataFindings:
    """Run every test of the data; ``local``: also the detector of marks that move, which takes longest."""
    y, classes = data.y, len(data.classes)
    tests = LeakTests(y, classes, seed)
    for family, numbers in (data.scene | data.traces).items():
        tests.add(family, numbers)
    cells = data.cells.permute(1, 2, 0, 3).flatten(0, 1)
    coarse = coarser(data.cells).permute(1, 2, 0, 3).flatten(0, 1)
    for number, features in enumerate(cells):
        tests.add(f"cell {number}", features)
    for number, features in enumerate(coarse):
        tests.add(f"coarse {number}", features)
    for number, features in enumerate(data.borders.permute(1, 0, 2)):
        tests.add(f"border {number}", features)
    files = properties(data.facts, data.classes) if data.facts else []
    for each in files:
        tests.add(each.name, each.values)
    scores, p = tests.run()
    progress(0.3)
    made = _Maker(data, tests, scores, p)
    findings: list[Finding | None] = [made.scene(family) for family in data.scene]
    findings += [made.trace(family) for family in data.traces]
    findings += [made.file(each.name) for each in files]
    findings.append(made.background)
    findings.append(made.cell())
    findings.append(made.rare())
    chosen = data.pictured[torch.linspace(0, len(data.pictured) - 1, min(PATTERN_IMAGES, len(data.pictured))).long()]
    pictures = data.pictures[torch.searchsorted(data.pictured, chosen)]
    patterns = pattern_scores(pictures, y[chosen], classes, seed=seed)
    findings.append(made.pattern(patterns, chosen))
    findings = _with_whole_mark(findings)
    progress(0.5)
    moving = find_moving(pictures, y[chosen], classes, seed=seed) if local else None
    if moving:
        findings.append(made.moving(moving, chosen))
    kept = sorted((each for each in findings if each is not None and each.p <= SIGNIFICANT), key=gravity)
    kept = sorted(one_cause(kept, Look(pictures, y[chosen], classes, moving, seed)), key=gravity)
    progress(1)
    return DataFindings(
        tuple(kept),
        tests_made(data, len(files), float(patterns.balanced.max()), local),
        made.leak_map,
        patterns.balanced,
        made.content,
        notes_on(data, drawn=made.drawn),
    )


def _with_whole_mark(findings: Sequence[Finding | None]) -> list[Finding | None]:
    """If a place and a pattern both leak, both get all their cells as the cue: a pattern only shows a mark's edges."""
    both = [each for each in findings if each and each.grade == "leaks" and each.family in ("place", "pattern")]
    cells = tuple(sorted({cell for each in both for cell in each.where or ()}))
    return [replace(each, cue=Cells(GRID, GRID, cells)) if each in both and each else each for each in findings]


# Leaks with a place come first. Traces that any processing leaves come last: the others say what was done.
ORDER = {"pattern": 0, "place": 0, "moving": 1, RARE: 1, "compression": 3, "parity": 3, "decoded": 4}


def gravity(finding: Finding) -> tuple[int, int, float]:
    """The sort key of findings: the gravest come first."""
    order = {"leaks": 0, "context": 1, "informative": 2}[finding.grade]
    placed = ORDER.get(finding.family, 2)
    return order, placed if finding.grade == "leaks" else 0, -finding.separation


class _Maker:
    """Makes findings of scores."""

    def __init__(self, data: Collected, tests: LeakTests, scores: LeakScores, p: Tensor) -> None:
        self.data, self.tests, self.scores, self.p = data, tests, scores, p
        self.number = {name: number for number, name in enumerate(tests.names)}
        at = [self.number[f"cell {cell}"] for cell in range(GRID * GRID)]
        self.leak_map = scores.balanced[at].reshape(GRID, GRID)
        self.apart_map = scores.separation[at].reshape(GRID, GRID)
        scene = max(float(scores.separation[self.number[family]]) for family in data.scene)
        self.drawn = data.flatness >= DRAWN
        self.all = torch.arange(len(data.y))
        self.background = self._background()
        behind = self.background.separation if self.background and self.background.what == BEHIND else 0.0
        self.content = max(scene, float(self.apart_map.median()), behind)

    def make(
        self,
        name: str,
        kind: Kind,
        family: str,
        what: str,
        grade: Grade,
        *,
        where: tuple[tuple[int, int], ...] | None = None,
        cue: Cue | None = None,
    ) -> Finding:
        number = self.number[name]
        balanced, separation = float(self.scores.balanced[number]), float(self.scores.separation[number])
        return Finding(
            kind=kind,
            family=family,
            what=what,
            grade=grade,
            tells_label=balanced,
            ci95=interval(balanced, self.data.y),
            p=float(self.p[number]),
            separation=separation,
            where=where,
            margins=self.scores.margins[number],
            index=self.all,
            cue=cue,
        )

    def scene(self, family: str) -> Finding:
        grade = grade_scene(float(self.scores.balanced[self.number[family]]))
        return self.make(family, "image", family, f"{family} of the whole image", grade, cue=SCENE_CUES[family])

    def trace(self, family: str) -> Finding:
        separation = float(self.scores.separation[self.number[family]])
        grade = grade_trace(separation, self.content, drawn=self.drawn)
        return self.make(family, "image", family, TRACE_WORDS[family], grade, cue=TRACE_CUES[family])

    def file(self, name: str) -> Finding:
        number = self.number[name]
        balanced, separation = float(self.scores.balanced[number]), float(self.scores.separation[number])
        return self.make(name, "file", name, f"the files' {name}", grade_file(name, balanced, separation, self.content))

    def _background(self) -> Finding | None:
        """Edge cells that tell more than the middle: a scene that goes with the class."""
        edge = torch.ones(GRID, GRID, dtype=torch.bool)
        edge[1:-1, 1:-1] = False
        frame, middle = float(self.leak_map[edge].median()), float(self.leak_map[2:-2, 2:-2].median())
        if frame < CONTEXT_TELLS:
            return None
        what = BEHIND if frame - middle >= BACKGROUND else "the scene in every cell"
        where = cells_above(self.leak_map, (frame + 0.5) / 2 if frame - middle < BACKGROUND else (frame + middle) / 2)
        best = int(self.leak_map.masked_fill(~edge, 0).argmax())
        # An image with every cell swapped is simply the other image, and any model follows that.
        cue = Cells(GRID, GRID, where) if what == BEHIND else None
        finding = self.make(f"cell {best}", "place", "background", what, "context", where=where, cue=cue)
        return self._together(finding, where)

    def _together(self, finding: Finding, where: Sequence[tuple[int, int]]) -> Finding:
        """The finding, scored on all its cells together, by the mean of their class scores."""
        y = self.data.y
        margins = self.scores.margins[[self.number[f"cell {row * GRID + column}"] for row, column in where]].mean(0)
        hit = margins.argmax(1) == y
        balanced = float(torch.stack([hit[y == label].float().mean() for label in y.unique()]).mean())
        separation = float(separation_of(margins, y))
        return replace(
            finding, margins=margins, tells_label=balanced, ci95=interval(balanced, y), separation=separation
        )

    def cell(self) -> Finding:
        best = int(self.apart_map.argmax())
        above = float(self.leak_map.flatten()[best] - self.leak_map.quantile(0.75))
        apart = float(self.apart_map.max() - self.apart_map.quantile(0.75))
        where = cells_above(self.apart_map, self._level())
        grade = grade_cell(above, apart, at_edge=at_edge(divmod(best, GRID), where), drawn=self.drawn)
        what = f"{cells_in_words(where)} of the image"
        return self.make(f"cell {best}", "place", "place", what, grade, where=where, cue=Cells(GRID, GRID, where))

    def _level(self) -> float:
        """The level for cells: just above what photographs reach; for drawings and large marks half way to the best."""
        upper, middle, best = (float(value) for value in self.apart_map.quantile(torch.tensor([0.75, 0.5, 1.0])))
        half_way = self.drawn or upper - middle >= CELL_NATURAL
        return (best + middle) / 2 if half_way else upper + CELL_NATURAL

    def rare(self) -> Finding | None:
        """A mark in few images of one class."""
        data = self.data
        labels = permuted_labels(data.y, permutations_for(len(data.classes)), self.tests.seed)
        mark = rare_mark(data.cells[..., :3], labels, len(data.classes), RARE_SHARE, RARE_APART)
        if mark is None:
            return None
        own, n = int((data.y == mark.label).sum()), len(data.y)
        margins = torch.zeros(n, len(data.classes))
        margins[:, mark.label] = mark.above
        balanced = (mark.marked / own + 1 - mark.others / (n - own)) / 2
        name, has = data.classes[mark.label], f"{mark.marked:,} of {own:,} images"
        article = "an" if mark.colour[0] in "aeiou" else "a"
        return Finding(
            kind="place",
            family=RARE,
            what=f"{article} {mark.colour} mark that {has} of {name} have, and {mark.others:,} of {n - own:,} others",
            grade=grade_rare(mark.apart, drawn=self.drawn),
            tells_label=balanced,
            ci95=interval(balanced, data.y),
            p=mark.p,
            separation=mark.apart,
            where=None,
            margins=margins,
            index=self.all,
            cue=Region(mark.region),
        )

    def pattern(self, scores: PatternScores, chosen: Tensor) -> Finding:
        best = divmod(int(scores.balanced.argmax()), GRID)
        balanced, separation = float(scores.balanced[best]), float(scores.separation[best])
        half_way = (balanced + max(0.5, float(scores.balanced.min()))) / 2
        where = cells_above(scores.balanced, half_way if self.drawn else PATTERN_TELLS)
        grade = grade_pattern(balanced, separation, at_edge=at_edge(best, where), drawn=self.drawn)
        y = self.data.y[chosen]
        margins = scores.margins[torch.tensor(where)[:, 0], torch.tensor(where)[:, 1]].sum(0)
        return Finding(
            kind="place",
            family="pattern",
            what=f"the same pattern at the same pixels in {cells_in_words(where)}",
            grade=grade,
            tells_label=balanced,
            ci95=interval(balanced, y),
            p=tail(balanced, y, GRID * GRID),
            separation=separation,
            where=where,
            margins=margins,
            index=chosen,
            cue=Cells(GRID, GRID, where),
        )

    def moving(self, found: Moving, chosen: Tensor) -> Finding:
        grade = grade_moving(found.balanced, found.separation, self.content, drawn=self.drawn)
        y = self.data.y[chosen][found.held]
        return Finding(
            kind="place",
            family="moving",
            what="a small mark that may lie anywhere",
            grade=grade,
            tells_label=found.balanced,
            ci95=interval(found.balanced, y),
            p=tail(found.balanced, y, 1),
            separation=found.separation,
            where=None,
            margins=found.scores,
            index=chosen,
            cue=Region(found.region),
        )
