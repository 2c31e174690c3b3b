"""Which findings a swap of cues can repair: those that no object explains, or a scene that the model leans on."""

from __future__ import annotations

from collections.abc import Sequence

from unspur.parts.cues.base import Cue
from unspur.parts.cues.cells import Cells
from unspur.parts.cues.texts import cue_text
from unspur.practice.audit.findings import Finding

MOST = 0.7  # share of the cells: with more of them the object itself would be swapped
WITH_BRIGHTNESS = {"colour": "cast"}  # a colour has its own brightness, which swapping the colour alone would leave


def swappable(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The cues to swap as texts, gravest first: of leaks that the model follows, or of all leaks if it follows none.

    Without any leak, they are those of context that the model follows. Natural context beside a leak is left alone,
    since a model may use it. A swap has a cost (plain images become stranger), so nothing is swapped without need.
    """
    leaks = _texts([finding for finding in findings if finding.grade == "leaks"])
    followed = [finding for finding in findings if finding.reliance and finding.reliance.leans]
    leaning = _texts([finding for finding in followed if finding.grade == "leaks"])
    return leaning or leaks or _texts([finding for finding in followed if finding.grade == "context"])


def _texts(findings: Sequence[Finding]) -> tuple[str, ...]:
    texts = [_text(finding.cue) for finding in findings if finding.cue is not None]
    return tuple(dict.fromkeys(text for text in texts if text is not None))


def _text(cue: Cue) -> str | None:
    if isinstance(cue, Cells) and len(cue.cells) > MOST * cue.rows * cue.columns:
        return None
    text = cue_text(cue)
    return None if text is None else WITH_BRIGHTNESS.get(text, text)
