"""What an audit tested, and what it could have found."""

from __future__ import annotations

from unspur.report.audit_context import AuditContext
from unspur.report.section import Section

AUDIT_TESTED: Section[AuditContext] = Section("audit_tested", lambda audit: audit)
