"""The verdict of an audit, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.audit_context import AuditContext
from unspur.report.section import Section
from unspur.report.words import percent

MEANING = {
    "clean": "nothing found",
    "context": "the scene goes with the class",
    "leaks": "the label leaks",
    "leans": "the model leans on a shortcut",
}


@dataclass(frozen=True)
class VerdictView:
    """The verdict with its figures."""

    name: str
    verdict: str
    meaning: str
    bad: bool
    sentence: str
    facts: tuple[tuple[str, str], ...]
    next: str


def view(audit: AuditContext) -> VerdictView:
    looked = f"{audit.images:,}" + (f" of {audit.of:,}" if audit.of > audit.images else "")
    facts = [("images", looked)]
    if audit.model:
        facts.append(("tested model", audit.model))
    if audit.model_accuracy is not None:
        facts.append(("its accuracy, mean of classes", percent(audit.model_accuracy)))
    if audit.estimated_worst_group is not None:
        facts.append(("estimated on images against the cue", percent(audit.estimated_worst_group)))
    return VerdictView(
        audit.name,
        audit.verdict,
        MEANING[audit.verdict],
        audit.verdict in ("leaks", "leans"),
        audit.sentence,
        tuple(facts),
        audit.next,
    )


AUDIT_VERDICT = Section("audit_verdict", view)
