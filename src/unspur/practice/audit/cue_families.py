"""For each family of statistics, the cue that moves what it measures from image to image, and what to call it."""

from __future__ import annotations

from unspur.parts.cues.base import Cue
from unspur.parts.cues.texts import WHOLE

SCENE_CUES: dict[str, Cue] = {family: WHOLE[family] for family in ("colour", "brightness", "contrast")}
TRACE_CUES: dict[str, Cue | None] = {
    "tone": WHOLE["tone"],
    "noise": WHOLE["noise"],
    "sharpness": WHOLE["sharpness"],
    "compression": WHOLE["compression"],
    "parity": WHOLE["sharpness"],
    "decoded": None,  # no processing gives an image the colours of another file
}
TRACE_WORDS = {
    "tone": "a tone curve or white balance (which values the channels use)",
    "noise": "the level of noise",
    "sharpness": "sharpness (blurred, sharpened or resampled)",
    "compression": "compression in blocks of eight pixels",
    "parity": "a trace of enlarging or of few values (neighbours that are equal)",
    "decoded": "changes after decoding (colours that no JPEG file holds)",
}
