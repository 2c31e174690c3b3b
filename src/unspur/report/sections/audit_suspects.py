"""Images that go against a shortcut, for a person to check; what was ticked is downloaded as groups.csv."""

from __future__ import annotations

import json
from dataclasses import dataclass

from unspur.report.audit_context import AuditContext
from unspur.report.section import Section
from unspur.report.sections.audit_findings import example


@dataclass(frozen=True)
class SuspectTile:
    """A suspect: its place in the rows of groups.csv, and its picture."""

    row: int
    filename: str
    label: str
    shows: str
    uri: str


@dataclass(frozen=True)
class SuspectsView:
    """The gallery, and every judged image as JSON, from which the page's script writes groups.csv."""

    what: str
    count: int
    tiles: tuple[SuspectTile, ...]
    rows: str
    judged: int
    files: bool


def view(audit: AuditContext) -> SuspectsView:
    suspects = audit.suspects
    assert suspects is not None  # the page has this part only then
    tiles = []
    for row, shown in suspects.pictured:
        image = suspects.judged[row]
        tiles.append(SuspectTile(row, image.filename, image.label, image.shows, example(shown)))
    rows = json.dumps([[image.filename, image.label, image.shows] for image in suspects.judged])
    return SuspectsView(suspects.what, suspects.count, tuple(tiles), rows, len(suspects.judged), suspects.files)


AUDIT_SUSPECTS = Section("audit_suspects", view, lambda audit: audit.suspects is not None)
