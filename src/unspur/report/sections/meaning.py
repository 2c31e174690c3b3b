"""What the page's numbers mean; the same on every page."""

from __future__ import annotations

from unspur.report.section import Section

MEANING = Section[object]("meaning", lambda context: None)
