"""Which findings a swap of cues can repair: what no object explains, or the scene that a model leans on."""

from __future__ import annotations

from collections.abc import Sequence

from unspur.parts.cues.base import Cue
from unspur.parts.cues.cells import Cells
from unspur.parts.cues.texts import cue_text
from unspur.practice.audit.findings import Finding

MOST = 0.7  # of the cells: with more of them the object itself would be swapped
WITH_BRIGHTNESS = {"colour": "cast"}  # a colour that goes with the class has its own brightness, which would stay


def swappable(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The cues to swap as texts, the gravest first: those of leaks, or, without any, of context that the model follows.

    Natural context beside a leak is left alone: a model may use it.
    """
    leaks = [finding for finding in findings if finding.grade == "leaks"]
    leaning = [
        finding for finding in findings if finding.grade == "context" and finding.reliance and finding.reliance.leans
    ]
    texts = [_text(finding.cue) for finding in leaks if finding.cue is not None]
    if not any(texts):
        texts = [_text(finding.cue) for finding in leaning if finding.cue is not None]
    return tuple(dict.fromkeys(text for text in texts if text is not None))


def _text(cue: Cue) -> str | None:
    if isinstance(cue, Cells) and len(cue.cells) > MOST * cue.rows * cue.columns:
        return None
    text = cue_text(cue)
    return None if text is None else WITH_BRIGHTNESS.get(text, text)
