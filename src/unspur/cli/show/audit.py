"""An audit in a few lines: the verdict, and a line a finding."""

from __future__ import annotations

import typer

from unspur.practice.audit.findings import AuditJSON, FindingJSON

MOST = 3  # findings that the object may explain are listed up to this many


def print_audit(audit: AuditJSON) -> None:
    """The verdict's sentence, the findings, the gravest first, and what was left out."""
    typer.echo(f"{audit['verdict'].upper()}: {audit['sentence']}")
    graver = [finding for finding in audit["findings"] if finding["grade"] != "informative"]
    rest = [finding for finding in audit["findings"] if finding["grade"] == "informative"]
    for finding in [*graver, *rest[:MOST]]:
        typer.echo(f"  {finding_line(finding)}")
    if len(rest) > MOST:
        typer.echo(f"  ... and {len(rest) - MOST} more that the object may explain")
    for note in audit["notes"]:
        typer.echo(f"Note: {note}")


def finding_line(finding: FindingJSON) -> str:
    """What it is, where, how well it tells the label, whether the model follows it, and who goes against it."""
    parts = [
        f"{finding['grade']}: {finding['what']}",
        f"tells the label {finding['tells_label']:.2f}",
        where(finding["where"]),
    ]
    if reliance := finding["reliance"]:
        parts.append(f"{reliance['follows_cue']:.0%} of predictions follow it (control {reliance['control']:.0%})")
    elif finding["grade"] != "informative":
        parts.append("not swapped")
    if finding["suspects"]:
        parts.append(f"{finding['suspects']:,} suspects")
    return ", ".join(part for part in parts if part)


def where(cells: list[list[int]] | None) -> str:
    """Cells in words: rows and columns counted from 1.

    >>> where([[0, 0], [0, 1]]), where([[r, c] for r in range(8) for c in range(8)]), where(None)
    ('rows 1-1, columns 1-2 of 8', '', '')
    """
    if not cells or len(cells) == 64:
        return ""
    rows, columns = [row for row, _ in cells], [column for _, column in cells]
    return f"rows {min(rows) + 1}-{max(rows) + 1}, columns {min(columns) + 1}-{max(columns) + 1} of 8"
