"""Which cue moves what a family of statistics measures from image to image, and what to call it."""

from __future__ import annotations

from unspur.parts.cues.base import Cue
from unspur.parts.cues.colour import Colour
from unspur.parts.cues.compression import Compression
from unspur.parts.cues.noise import Noise
from unspur.parts.cues.sharpness import Sharpness
from unspur.parts.cues.tone import Tone

SCENE_CUES: dict[str, Cue] = {
    "colour": Colour(),
    "brightness": Tone(contrast=False),
    "contrast": Tone(brightness=False),
}
TRACE_CUES: dict[str, Cue] = {
    "tone": Tone(channels=True),
    "noise": Noise(),
    "sharpness": Sharpness(),
    "compression": Compression(),
    "parity": Sharpness(),
}
TRACE_WORDS = {
    "tone": "a tone curve or white balance (which values the channels use)",
    "noise": "the level of noise",
    "sharpness": "sharpness (blurred, sharpened or resampled)",
    "compression": "compression in blocks of eight pixels",
    "parity": "a trace of enlarging or of few values (neighbours that are equal)",
}
