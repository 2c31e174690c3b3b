"""Findings with a single mark as their cause: the mark is exchanged between images, and findings are measured again.

A square in a corner is a place, a small mark that a network finds anywhere, and edges that look like compression. A
finding is no second leak if it predicts labels while each image gets the mark of another image of its class, but hardly
when it gets the mark of any image. A finding that still predicts them is a leak of its own, even if it always comes
with the mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from unspur.core.seeds import stream
from unspur.parts.cues.base import Cue
from unspur.parts.cues.cells import Cells
from unspur.parts.cues.detector import fitted, places
from unspur.practice.audit.findings import Finding
from unspur.practice.audit.leak_scores import leak_scores
from unspur.practice.audit.moving import Moving, told_by
from unspur.practice.audit.processing_traces import TRACES

MARKS = ("pattern", "place", "moving")  # families that say where a mark lies
EFFECTS = ("moving", *TRACES)  # families in which a mark may show as well
MOST = 600  # images in which the mark is exchanged
LEFT = 0.5  # share of the accuracy above chance: if less is left without the mark, the mark explains the finding
LARGEST = 0.25  # share of the image: exchanging more would remove other traces together with the mark


class Exchanged(NamedTuple):
    """Images (bytes) with the mark of another image of their class, the same with the mark of any image, and labels."""

    kept: Tensor
    other: Tensor
    y: Tensor


@dataclass(frozen=True, eq=False)
class Look:
    """Images that findings can be measured on again."""

    pictures: Tensor  # bytes
    y: Tensor
    classes: int
    moving: Moving | None  # the detector of marks that move, and which of the pictures it was not trained on
    seed: int

    def exchanged(self, mark: Cue, *, held: bool) -> Exchanged:
        """Some pictures in random order; with ``held``, only pictures that the detector was not trained on."""
        of = self.moving.held if self.moving and held else torch.arange(len(self.y))
        numbers = of[torch.randperm(len(of), generator=stream(self.seed, "audit one cause"))[:MOST]]
        images, y = self.pictures[numbers].float() / 255, self.y[numbers]
        by_class = y.argsort(stable=True)  # class by class; each image takes the mark of its neighbour
        alike = torch.empty_like(by_class)
        alike[by_class] = torch.cat([part.roll(1) for part in by_class.split(y.bincount().tolist())])
        with torch.no_grad():
            both = [mark.swap(images, images[donors]) for donors in (alike, torch.arange(len(y)).roll(1))]
        kept, other = ((each * 255).round().to(torch.uint8) for each in both)
        return Exchanged(kept, other, y)

    def told(self, family: str, images: Tensor, y: Tensor) -> float:
        """How far above chance labels can be predicted from what ``family`` measures in images (bytes)."""
        if self.moving and family == "moving":
            balanced = told_by(places(self.moving.net, fitted(images))[0], y)
        else:
            numbers = TRACES[family](images.float() / 255).unsqueeze(0)
            balanced = float(leak_scores(numbers, y, self.classes, seed=self.seed, permutations=0).balanced)
        return balanced - 1 / self.classes


def one_cause(findings: Sequence[Finding], look: Look) -> list[Finding]:
    """The findings, gravest first; leaks that the first mark explains become ``informative``, and say so."""
    leaks = [each for each in findings if each.grade == "leaks"]
    mark = next((each for each in leaks if each.family in MARKS), None)
    if mark is None or mark.cue is None or not _is_small(mark.cue):
        return list(findings)
    effects = [each for each in leaks if each.family in EFFECTS and each is not mark]
    images = {held: look.exchanged(mark.cue, held=held) for held in {each.family == "moving" for each in effects}}
    explained = [each for each in effects if _explained_by(images[each.family == "moving"], each, look)]
    return [_explained(each, mark) if each in explained else each for each in findings]


def _is_small(cue: Cue) -> bool:
    return not isinstance(cue, Cells) or len(cue.cells) <= LARGEST * cue.rows * cue.columns


def _explained_by(images: Exchanged, finding: Finding, look: Look) -> bool:
    """Whether the finding predicts labels with marks of the same class, but hardly with marks of any image."""
    kept, other = (look.told(finding.family, each, images.y) for each in (images.kept, images.other))
    # Small copies may not show a trace that the original images have; then they prove nothing.
    shown = kept >= LEFT * (finding.tells_label - 1 / look.classes)
    return shown and other < LEFT * kept


def _explained(finding: Finding, mark: Finding) -> Finding:
    return replace(finding, grade="informative", what=f"{finding.what}, explained by {mark.what}")
