"""`unspur audit`: the page about an audit."""

from __future__ import annotations

from pathlib import Path

from unspur.report.audit_context import AuditContext
from unspur.report.page import Failure, Page, Part, placed, write_page
from unspur.report.sections.audit_findings import AUDIT_FINDINGS
from unspur.report.sections.audit_leak_map import AUDIT_LEAK_MAP
from unspur.report.sections.audit_model import AUDIT_MODEL
from unspur.report.sections.audit_suspects import AUDIT_SUSPECTS
from unspur.report.sections.audit_tested import AUDIT_TESTED
from unspur.report.sections.audit_verdict import AUDIT_VERDICT


def write_audit(context: AuditContext, out: Path) -> list[Failure]:
    """Write the page to the file ``out``; returns which of its sections failed."""
    return write_page(page_of(context), out)


def page_of(context: AuditContext) -> Page:
    """The parts of the page: the verdict above, then where, what, who goes against it, and what was tested."""
    parts = [Part("where", "Where labels leak", placed([AUDIT_LEAK_MAP], context))]
    if context.findings:
        parts.append(Part("findings", "Findings", placed([AUDIT_FINDINGS], context)))
    if context.evidence:
        parts.append(Part("model", "What the model uses", placed([AUDIT_MODEL], context)))
    if context.suspects:
        parts.append(Part("suspects", "Suspects", placed([AUDIT_SUSPECTS], context)))
    parts.append(Part("tested", "What was tested", placed([AUDIT_TESTED], context)))
    return Page(f"unspur audit: {context.name}", placed([AUDIT_VERDICT], context), parts)
