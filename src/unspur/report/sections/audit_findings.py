"""Each finding of an audit: what it tells, examples with the cue outlined, and the swap test in pictures."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from unspur.report.audit_context import AuditContext, Example, FindingContext, RelianceContext
from unspur.report.pictures import enlarged, outlined, photo
from unspur.report.scores import Share
from unspur.report.section import Section


@dataclass(frozen=True)
class ExampleRow:
    """Images of one class with the cue outlined."""

    label: str
    images: tuple[str, ...]


@dataclass(frozen=True)
class SwapRow:
    """Pictures of one swap, and what the model says before and after."""

    before: str
    donor: str
    after: str
    label: str
    donor_label: str
    said_before: str
    said_after: str
    followed: bool


@dataclass(frozen=True)
class FindingView:
    """One finding."""

    what: str
    mark: str
    bad: bool
    tells: Share
    p: str
    reliance: RelianceContext | None
    suspects: int | None
    accuracy_on_suspects: Share | None
    classes: tuple[ExampleRow, ...]
    swaps: tuple[SwapRow, ...]
    map_share: float | None
    area_share: float | None


@dataclass(frozen=True)
class FindingsView:
    """Findings with pictures, and those that the object may explain as a table."""

    graver: tuple[FindingView, ...]
    informative: tuple[FindingView, ...]


def view(audit: AuditContext) -> FindingsView:
    shown = [_finding(each) for each in audit.findings]
    return FindingsView(
        tuple(each for each in shown if each.mark != "informative"),
        tuple(each for each in shown if each.mark == "informative"),
    )


def example(each: Example) -> str:
    """The picture with the cue outlined, if it lies at a place."""
    return plain(each.image) if each.outline is None else photo(outlined(each.image, each.outline))


def plain(image: Tensor) -> str:
    return photo(enlarged(image))


def _finding(each: FindingContext) -> FindingView:
    leans = each.grade == "leaks" and each.reliance is not None and each.reliance.leans
    return FindingView(
        each.what,
        "leans" if leans else each.grade,
        each.grade == "leaks",
        each.tells,
        "< 0.005" if each.p < 0.005 else f"{each.p:.3f}",
        each.reliance,
        each.suspects,
        each.accuracy_on_suspects,
        tuple(ExampleRow(row.label, tuple(example(one) for one in row.examples)) for row in each.classes),
        tuple(
            SwapRow(
                plain(swap.image),
                example(swap.donor),
                plain(swap.changed),
                swap.label,
                swap.donor_label,
                swap.before,
                swap.after,
                swap.followed,
            )
            for swap in each.swaps
        ),
        each.map_share,
        each.area_share,
    )


AUDIT_FINDINGS = Section("audit_findings", view)
