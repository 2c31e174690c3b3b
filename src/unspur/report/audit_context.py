"""What a page about an audit shows: plain values and pictures (bytes, 3 x height x width)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from unspur.report.scores import Share


@dataclass(frozen=True)
class Example:
    """An image and where the cue lies in it; None: all over it."""

    image: Tensor
    outline: Tensor | None


@dataclass(frozen=True)
class ClassExamples:
    """Images of one class that show its usual cue."""

    label: str
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class SwapExample:
    """An image before and after it got a donor's cue, and what the model says of it."""

    image: Tensor
    donor: Example
    changed: Tensor
    label: str
    donor_label: str
    before: str
    after: str

    @property
    def followed(self) -> bool:
        return self.after == self.donor_label


@dataclass(frozen=True)
class RelianceContext:
    """The swap test: how often predictions are the donor's class, and with a donor of the image's own class."""

    follows: float
    control: float
    difference: Share
    leans: bool
    images: int


@dataclass(frozen=True)
class FindingContext:
    """Something that gives labels away."""

    what: str
    grade: str
    tells: Share
    p: float
    reliance: RelianceContext | None
    suspects: int | None
    accuracy_on_suspects: Share | None
    classes: tuple[ClassExamples, ...]
    swaps: tuple[SwapExample, ...]
    map_share: float | None = None  # of the model's maps that lies in the finding's cells
    area_share: float | None = None  # of the image that these cells are


@dataclass(frozen=True)
class MeanImage:
    """The mean of a class's images."""

    label: str
    images: int
    mean: Tensor


@dataclass(frozen=True)
class JudgedImage:
    """An image and the class whose cue it shows, by the audit's estimate."""

    filename: str
    label: str
    shows: str


@dataclass(frozen=True)
class SuspectsContext:
    """The suspects of one finding, for a person to check, among all images that it was judged on."""

    what: str
    judged: tuple[JudgedImage, ...]
    pictured: tuple[tuple[int, Example], ...]  # places in ``judged`` and pictures, the surest first
    count: int  # suspects, pictured or not
    files: bool  # whether the names are those of files


@dataclass(frozen=True)
class ChecksContext:
    """A group of checks, and what it could have found."""

    what: str
    tests: int
    best: float | None
    power: str | None


@dataclass(frozen=True)
class LookedAtContext:
    """Where the model's maps lie."""

    map: Tensor  # (rows, columns) shares that add up to 1
    agrees: float | None  # with the leak map, over cells
    images: int


@dataclass(frozen=True)
class HiddenContext:
    """The model's accuracy with what it looks at hidden, and with the same of another image hidden."""

    accuracy: float
    hidden: float
    control: float
    lost: Share
    share: float
    images: int


@dataclass(frozen=True)
class MinedContext:
    """Images that a biased model gets wrong, and the tested model on them and elsewhere."""

    by: str
    mined: int
    of: int
    accuracy: float | None
    elsewhere: float | None
    loss: float | None
    loss_elsewhere: float | None
    suspects: int | None


@dataclass(frozen=True)
class EvidenceContext:
    """What is known of the model beside the swap test."""

    looked_at: LookedAtContext | None
    hidden: HiddenContext | None
    mined: tuple[MinedContext, ...]


@dataclass(frozen=True)
class AuditContext:
    """An audit."""

    name: str
    verdict: str
    sentence: str
    next: str
    images: int
    of: int
    model: str | None
    model_accuracy: float | None
    estimated_worst_group: float | None
    means: tuple[MeanImage, ...]
    leak_map: Tensor  # (rows, columns) balanced accuracy
    chance: float
    findings: tuple[FindingContext, ...]
    suspects: SuspectsContext | None
    tested: tuple[ChecksContext, ...]
    notes: tuple[str, ...]
    evidence: EvidenceContext | None = None  # None: no model was tested, or only its answers are known
