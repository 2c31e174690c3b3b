"""The cues that an audit found and that can be swapped, as its folder keeps them."""

from __future__ import annotations

from pathlib import Path

from unspur.core.files import read_json, user_path
from unspur.errors import require
from unspur.parts.cues.texts import cues_of

FINDINGS = "findings.json"


def audited_cues(folder: str | Path) -> tuple[str, ...]:
    """The cues of a finished audit as texts, the first to be swapped first."""
    path = user_path(folder)
    require(
        (path / FINDINGS).exists(),
        f"{folder} holds no finished audit: it has no {FINDINGS}; name an audit's folder, or make one with "
        "`unspur audit`.",
    )
    found = read_json(path / FINDINGS)
    require(
        isinstance(found, dict) and isinstance(found.get("cues"), list),
        f"{folder} was audited by an older version, which did not keep cues; audit the images again.",
    )
    texts = [str(text) for text in found["cues"]]
    require(bool(texts), f"The audit {folder} found nothing that can be swapped between images; name cues=... instead.")
    cues_of(texts)
    return tuple(texts)
