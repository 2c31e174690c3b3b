"""The types of what an audit found, and the folder that keeps it (docs/audit.md)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, NotRequired, TypedDict

from torch import Tensor

from unspur.core.files import replacing
from unspur.parts.cues.base import Cue
from unspur.parts.cues.texts import cue_text
from unspur.practice.audit.evidence import Evidence, EvidenceJSON

Kind = Literal["place", "image", "file"]
Grade = Literal["informative", "context", "leaks"]  # of a finding; the model can turn it into `leans`
Verdict = Literal["clean", "context", "leaks", "leans"]
RARE = "rare"  # the family of marks that few images of one class have
LEANS = 0.05  # a model leans on a cue if it follows it at least this much more often than the control


class RelianceJSON(TypedDict):
    follows_cue: float  # how often the model predicts the class whose cue an image was given
    control: float  # the same with the cue of an image of its own class
    ci95: list[float]  # of the difference
    images: int  # that were tested


class FindingJSON(TypedDict):
    kind: Kind  # place, image or file
    what: str  # a sentence's worth of words
    grade: Grade  # informative, context or leaks
    where: list[list[int]] | None  # None for kind "place": a mark that moves
    tells_label: float  # balanced accuracy of telling the label by it alone
    ci95: list[float]  # of that
    p: float  # corrected over everything that was tested
    separation: float  # of the classes' medians, in median absolute deviations
    reliance: RelianceJSON | None  # whether the model follows it; None: not tested
    suspects: int | None  # images whose cue speaks for another class than their label
    accuracy_on_suspects: float | None  # of the model, on the surer half of them
    suspects_ci95: list[float] | None  # of that
    cue: str | None  # as parts/cues/texts.py writes it; None: it cannot be moved between images


class TestedJSON(TypedDict):
    what: str  # the group of checks
    tests: int  # how many it has
    best: float | None  # the best balanced accuracy among them
    power: str | None  # a sentence: what would have been found


class Tested(NamedTuple):
    """A group of checks that were made, and what they could have found."""

    what: str
    tests: int
    best: float | None  # the best balanced accuracy among them
    power: str | None  # a sentence


class Reliance(NamedTuple):
    """What a model does with a cue that comes from another class (``swap_test``)."""

    follows_cue: float  # share of predictions that are the donor's class
    control: float  # the same with a donor of the image's own class
    ci95: tuple[float, float]  # of the difference
    images: int

    @property
    def leans(self) -> bool:
        """Whether the model follows the cue more than the control, significantly and by more than a trifle."""
        return self.ci95[0] > 0 and self.follows_cue - self.control >= LEANS

    @staticmethod
    def of(stored: RelianceJSON) -> Reliance:
        low, high = stored["ci95"]
        return Reliance(stored["follows_cue"], stored["control"], (low, high), stored["images"])

    def as_json(self) -> RelianceJSON:
        low, high = self.ci95
        return {
            "follows_cue": round(self.follows_cue, 4),
            "control": round(self.control, 4),
            "ci95": [round(low, 4), round(high, 4)],
            "images": self.images,
        }


def is_shortcut(grade: Grade, reliance: Reliance | None) -> bool:
    """Whether a finding gives labels away without being the object, or the model was seen to lean on it."""
    return grade == "leaks" or (reliance is not None and reliance.leans)


@dataclass(frozen=True, eq=False)
class Finding:
    """Something that gives labels away."""

    kind: Kind
    family: str  # place, pattern, moving, colour, noise, ..., or the name of a file's property
    what: str  # in words
    grade: Grade
    tells_label: float  # cross-validated balanced accuracy from this alone
    ci95: tuple[float, float]
    p: float  # against permuted labels, corrected over all tests
    separation: float  # of the classes, in robust deviations
    where: tuple[tuple[int, int], ...] | None  # cells (row, column) of the leak map; None: no fixed place
    margins: Tensor = field(repr=False)  # (m, classes) the cue's own opinion of each image
    index: Tensor = field(repr=False)  # the m images' numbers
    cue: Cue | None = field(default=None, repr=False)  # None: it cannot be moved between images
    reliance: Reliance | None = None
    suspects: tuple[int, ...] | None = None  # images that go against it, the surest first
    accuracy_on_suspects: float | None = None
    suspects_ci95: tuple[float, float] | None = None

    def with_model(
        self, reliance: Reliance | None, accuracy: float | None, ci95: tuple[float, float] | None
    ) -> Finding:
        return replace(self, reliance=reliance, accuracy_on_suspects=accuracy, suspects_ci95=ci95)

    def as_json(self) -> FindingJSON:
        return {
            "kind": self.kind,
            "what": self.what,
            "grade": self.grade,
            "where": None if self.where is None else [list(cell) for cell in self.where],
            "tells_label": round(self.tells_label, 4),
            "ci95": [round(bound, 4) for bound in self.ci95],
            "p": round(self.p, 5),
            "separation": round(self.separation, 3),
            "reliance": self.reliance.as_json() if self.reliance else None,
            "suspects": None if self.suspects is None else len(self.suspects),
            "accuracy_on_suspects": None if self.accuracy_on_suspects is None else round(self.accuracy_on_suspects, 4),
            "suspects_ci95": None if self.suspects_ci95 is None else [round(bound, 4) for bound in self.suspects_ci95],
            "cue": None if self.cue is None else cue_text(self.cue),
        }


class Suspect(NamedTuple):
    """An image that goes against what gives its class away."""

    filename: str
    label: str
    score: float  # higher: surer
    why: str


class AuditJSON(TypedDict):
    verdict: Verdict  # clean, context, leaks or leans
    sentence: str  # the verdict in words
    images: int  # that were looked at
    of: int  # images that there are
    classes: list[str]  # that were compared
    tested: list[TestedJSON]  # every check that was made
    findings: list[FindingJSON]  # the gravest first
    cues: list[str]  # what `unspur train swap --set audit=...` swaps
    leak_map: list[list[float]]  # balanced accuracy from each cell's statistics, row by row
    pattern_map: list[list[float]]  # the same from fine detail at fixed pixels
    model: str | None  # what was tested for following a cue; None: nothing
    model_accuracy: float | None  # balanced, on images that it was not trained on
    estimated_worst_group: float | None  # the lowest accuracy on suspects; None: not tested
    next: str  # the command that usually comes next
    target: str  # the data as `unspur train` takes them
    run: str | None  # the run whose model was tested
    evidence: NotRequired[EvidenceJSON | None]  # audits of earlier versions did not write it
    notes: list[str]  # what a reader must know
    seconds: dict[str, float]  # that each part took


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of an audit."""

    verdict: Verdict
    sentence: str
    images: int
    of: int  # images that there are; more than were looked at if they were sampled
    classes: tuple[str, ...]
    tested: tuple[Tested, ...]
    findings: tuple[Finding, ...]  # the gravest first
    cues: tuple[str, ...]  # to be swapped (swappable.py)
    leak_map: Tensor  # (rows, columns) balanced accuracy from each cell's statistics
    pattern_map: Tensor  # the same from fine detail at fixed pixels
    model: str | None  # what was tested for reliance; None: nothing
    model_accuracy: float | None  # balanced, on images that it was not trained on
    estimated_worst_group: float | None
    suspects: tuple[Suspect, ...]
    next: str
    target: str
    run: str | None = None
    evidence: Evidence | None = None  # None: no model was tested
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> AuditJSON:
        worst, accuracy = self.estimated_worst_group, self.model_accuracy
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "images": self.images,
            "of": self.of,
            "classes": list(self.classes),
            "tested": [
                {"what": each.what, "tests": each.tests, "best": each.best, "power": each.power} for each in self.tested
            ],
            "findings": [finding.as_json() for finding in self.findings],
            "cues": list(self.cues),
            "leak_map": [[round(value, 4) for value in row] for row in self.leak_map.tolist()],
            "pattern_map": [[round(value, 4) for value in row] for row in self.pattern_map.tolist()],
            "model": self.model,
            "model_accuracy": None if accuracy is None else round(accuracy, 4),
            "estimated_worst_group": None if worst is None else round(worst, 4),
            "next": self.next,
            "target": self.target,
            "run": self.run,
            "evidence": self.evidence.as_json() if self.evidence else None,
            "notes": list(self.notes),
            "seconds": {part: round(value, 2) for part, value in self.seconds.items()},
        }


def write_suspects(path: Path, suspects: Sequence[Suspect]) -> None:
    """The suspects as a table, the surest first."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(Suspect._fields)
        table.writerows((each.filename, each.label, f"{each.score:.3f}", each.why) for each in suspects)
